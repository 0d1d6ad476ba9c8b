"""What can be deployed, as a picture: the metric of each form of one or several results against its speed.

To the right is faster, up is better. The line across is the untouched model, at once as fast as itself. The bar through a mark
is the 95 % interval of its change.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from axformer.drawing.marks import CURVES
from axformer.drawing.scale import LEFT, Axes, fitted
from axformer.drawing.svg import EDGE, LETTER, WIDTH, Canvas, legend, line_of, words
from axformer.errors import InputError

_GAP, _HEIGHT = 36, 240
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
    axes = _axes(untouched, marks, top, width)
    signs, height = legend(_signs(series), top + _HEIGHT + 66, width)
    drawn = [*_frame(axes, metric, untouched), *_series(series, axes), *_names(marks, axes), *signs]
    return canvas.drawn(drawn, height)


def _told(mark: FormMark) -> str:
    where = "" if mark.interval is None else f", between {mark.interval[0]:.2f} and {mark.interval[1]:.2f}"
    return f"{mark.name} {mark.value:.2f}{where}, {mark.times:.2f} times as fast"


def _axes(untouched: float, marks: Sequence[FormMark], top: float, width: int) -> Axes:
    ends = [end for mark in marks for end in (mark.interval or ())]
    values, times = [untouched, *(mark.value for mark in marks), *ends], [1.0, 1.5, *(mark.times for mark in marks)]
    across = fitted(times, 0.0, _MARGIN, LEFT, width - EDGE - 80)
    return Axes(across, fitted(values, _LEAST_SPAN, _MARGIN, top + _HEIGHT, top), LEFT, width - EDGE)


def _frame(axes: Axes, metric: str, untouched: float) -> Iterator[str]:
    yield from axes.grid(_TICKS)
    yield from axes.numbers("x")
    yield axes.name("times as fast as the untouched model, one input")
    yield words(LEFT - 46, axes.upright.stop - 8, metric, "ink")
    yield axes.level(untouched)


def _series(series: Sequence[FormSeries], axes: Axes) -> Iterator[str]:
    for index, one in enumerate(series):
        yield from line_of(_mark(index, one.name, mark, axes) for mark in one.marks)


def _mark(index: int, name: str, mark: FormMark, axes: Axes) -> str:
    x, y = (round(place, 1) for place in axes.place(mark.times, mark.value))
    bar = ""
    if mark.interval is not None:
        low, high = (round(axes.upright.place(end), 1) for end in mark.interval)
        bar = f'<path class="curve-{index % len(CURVES)}" opacity=".45" d="M{x} {low}V{high}"/>'
    told = escape(f"{name}, {_told(mark)}")
    shape = _SHAPES[index % len(_SHAPES)]
    look = f'class="letter-{index % len(CURVES)}" transform="translate({x} {y})"'
    return f'{bar}<path {look} d="{shape}"><title>{told}</title></path>'


def _names(marks: Sequence[FormMark], axes: Axes) -> Iterator[str]:
    """The name of each mark beside it, below other names and marks that it would cover."""
    places = [axes.place(mark.times, mark.value) for mark in marks]
    placed = [(x - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y in places]
    for mark in sorted(marks, key=lambda mark: -mark.value):
        x, y = axes.across.place(mark.times) + _ASIDE, axes.upright.place(mark.value) - 4
        room = LETTER * len(mark.name)
        while any(abs(y - other) < _LINE and x < end and start < x + room for start, end, other in placed):
            y += 1
        placed.append((x, x + room, y))
        yield words(round(x, 1), round(y, 1), mark.name, "ink")


def _signs(series: Sequence[FormSeries]) -> Iterator[tuple[str, str]]:
    for index, one in enumerate(series):
        yield f'<path class="letter-{index % len(CURVES)}" d="{_SHAPES[index % len(_SHAPES)]}"/>', one.name
    yield '<path class="base" d="M-11 0h22"/>', "untouched model"
