"""What can be deployed, as a picture: the metric of each form of one or several results against its speed.

To the right is faster, up is better. The line across is the untouched model, at once as fast as itself. The bar through a mark
is the 95 % interval of its change.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from axformer.drawing.marks import CURVES
from axformer.drawing.scale import Scale, labels
from axformer.drawing.svg import EDGE, LETTER, WIDTH, Canvas, legend, line_of, words
from axformer.errors import InputError

_LEFT, _GAP, _HEIGHT = 66, 36, 240
_MARGIN = 0.08
"""Margin around the data, as a share of its range."""
_LEAST_SPAN = 2.0
"""The vertical axis spans at least this much, so that equal models look equal."""
_TICKS = 5
_LINE = 14
"""Height of a label."""
_RADIUS, _ASIDE = 6, 9
"""Half of a mark's width, and the distance of a label from its mark."""
_SHAPES = ("M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z", "M-5-5h10v10h-10z", "M0-7l7 7l-7 7l-7-7z", "M0-7l6 11h-12z")
"""Results differ in shape as well as in colour."""
MOST_RESULTS = 12
"""Six colours and four shapes make so many different marks, taken in turn."""


@dataclass(frozen=True)
class FormMark:
    """One form."""

    name: str
    times: float
    """How many times as fast as the untouched model."""
    value: float
    """Its metric, in the unit of the axis."""
    interval: tuple[float, float] | None
    """Where the metric lies with 95 % confidence, as the untouched model's and its change; None if unknown."""


@dataclass(frozen=True)
class FormSeries:
    """The forms of one result."""

    name: str
    marks: Sequence[FormMark]


@dataclass(frozen=True)
class _Frame:
    across: Scale
    upright: Scale


def forms_chart(title: str, metric: str, untouched: float, series: Sequence[FormSeries], width: int = WIDTH) -> str:
    """The SVG text of the forms of several results of one checkpoint.

    Args:
        title: the heading.
        metric: the name of the vertical axis, with its unit.
        untouched: the metric of the untouched model.
        series: the results, :data:`MOST_RESULTS` at most.
        width: units of the picture.

    Raises:
        InputError: there is no form, or there are too many results.
    """
    marks = [mark for one in series for mark in one.marks]
    if not marks or len(series) > MOST_RESULTS:
        raise InputError(
            f"{len(marks)} forms of {len(series)} results: give 1 to {MOST_RESULTS} results with their forms"
        )
    described = [f"{one.name}: {'; '.join(map(_told, one.marks))}" for one in series]
    summary = f"untouched model {untouched:.2f}. {'. '.join(described)}"
    canvas = Canvas("forms", title, ["right is faster, up is better; bars are 95 % intervals"], summary, width)
    top = canvas.top + _GAP
    frame = _frame(untouched, marks, (_LEFT, width - EDGE - 80), (top + _HEIGHT, top))
    signs, height = legend(_signs(series), top + _HEIGHT + 66, width)
    drawn = [*_axes(frame, metric, untouched, width), *_series(series, frame), *_names(marks, frame), *signs]
    return canvas.drawn(drawn, height)


def _told(mark: FormMark) -> str:
    where = "" if mark.interval is None else f", between {mark.interval[0]:.2f} and {mark.interval[1]:.2f}"
    return f"{mark.name} {mark.value:.2f}{where}, {mark.times:.2f} times as fast"


def _frame(untouched: float, marks: Sequence[FormMark], across: tuple[int, int], upright: tuple[int, int]) -> _Frame:
    ends = [end for mark in marks for end in (mark.interval or ())]
    values = [untouched, *(mark.value for mark in marks), *ends]
    times = [1.0, *(mark.times for mark in marks)]
    lacking = max(0.0, _LEAST_SPAN - (max(values) - min(values))) / 2
    return _Frame(
        _axis(min(times), max(max(times), 1.5), *across), _axis(min(values) - lacking, max(values) + lacking, *upright)
    )


def _axis(low: float, high: float, start: float, stop: float) -> Scale:
    room = _MARGIN * (high - low)
    return Scale(low - room, high + room, start, stop)


def _axes(frame: _Frame, metric: str, untouched: float, width: int) -> Iterator[str]:
    across, upright = frame.across, frame.upright
    ticks = upright.ticks(_TICKS)
    for tick, label in zip(ticks, labels(ticks), strict=True):
        yield f'<path class="grid" d="M{_LEFT} {upright.place(tick):.1f}H{width - EDGE}"/>'
        yield words(_LEFT - 6, round(upright.place(tick) + 4, 1), label, "faint", "end")
    ticks = across.ticks(2 * _TICKS)
    for tick, label in zip(ticks, labels(ticks), strict=True):
        yield words(round(across.place(tick), 1), upright.start + 18, f"{label}x", "faint", "middle")
    yield words(
        (_LEFT + width) / 2, upright.start + 38, "times as fast as the untouched model, one input", "ink", "middle"
    )
    yield words(_LEFT - 46, upright.stop - 8, metric, "ink")
    yield f'<path class="base" d="M{_LEFT} {upright.place(untouched):.1f}H{width - EDGE}"/>'


def _series(series: Sequence[FormSeries], frame: _Frame) -> Iterator[str]:
    for index, one in enumerate(series):
        yield from line_of(_mark(index, one.name, mark, frame) for mark in one.marks)


def _mark(index: int, name: str, mark: FormMark, frame: _Frame) -> str:
    x, y = round(frame.across.place(mark.times), 1), round(frame.upright.place(mark.value), 1)
    bar = ""
    if mark.interval is not None:
        low, high = (round(frame.upright.place(end), 1) for end in mark.interval)
        bar = f'<path class="curve-{index % len(CURVES)}" opacity=".45" d="M{x} {low}V{high}"/>'
    told = escape(f"{name}, {_told(mark)}")
    shape = _SHAPES[index % len(_SHAPES)]
    look = f'class="letter-{index % len(CURVES)}" transform="translate({x} {y})"'
    return f'{bar}<path {look} d="{shape}"><title>{told}</title></path>'


def _names(marks: Sequence[FormMark], frame: _Frame) -> Iterator[str]:
    """The name of each mark beside it, below other names and marks that it would cover."""
    places = [(frame.across.place(mark.times), frame.upright.place(mark.value)) for mark in marks]
    placed = [(x - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y in places]
    for mark in sorted(marks, key=lambda mark: -mark.value):
        x, y = frame.across.place(mark.times) + _ASIDE, frame.upright.place(mark.value) - 4
        room = LETTER * len(mark.name)
        while any(abs(y - other) < _LINE and x < end and start < x + room for start, end, other in placed):
            y += 1
        placed.append((x, x + room, y))
        yield words(round(x, 1), round(y, 1), mark.name, "ink")


def _signs(series: Sequence[FormSeries]) -> Iterator[tuple[str, str]]:
    for index, one in enumerate(series):
        yield f'<path class="letter-{index % len(CURVES)}" d="{_SHAPES[index % len(_SHAPES)]}"/>', one.name
    yield '<path class="base" d="M-11 0h22"/>', "untouched model"
