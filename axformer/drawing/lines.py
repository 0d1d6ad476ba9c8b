"""Lines through measured points, with lines across for what they are compared with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from axformer.drawing.marks import CURVES
from axformer.drawing.scale import Scale, labels
from axformer.drawing.svg import EDGE, WIDTH, Canvas, legend, line_of, words
from axformer.errors import InputError

_LEFT = 66
_GAP, _HEIGHT = 26, 190
"""Space above the plot, and its height."""
_MARGIN = 0.08
"""Margin around the data, as a share of its range."""
_MOST_TICKS = 6
_DASHES = ("", "8 3", "2 3", "10 3 2 3", "5 5", "12 4")
"""Lines differ in dashes as well as in colour."""
_LEVEL_DASHES = ("9 3", "5 4", "1 4")
"""Of the lines across, three at most."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """One line."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Lines:
    """A picture of lines, six at most."""

    name: str
    """Prefix that makes its ids unique on a page."""
    title: str
    subtitle: Sequence[str]
    across: str
    """What the horizontal axis counts."""
    upright: str
    """What the vertical axis measures."""
    lines: Sequence[Line]
    levels: Sequence[tuple[str, float]] = ()
    """Names and values of lines across."""
    least_span: float = 0.02
    """The vertical axis spans at least this much, so that equal values look equal."""
    form: str = ".4f"
    """How values are written."""


def lines_chart(chart: Lines, width: int = WIDTH) -> str:
    """The SVG text of some lines.

    Raises:
        InputError: there is no point, or there are too many lines.
    """
    points = [point for line in chart.lines for point in line.points]
    if not points or len(chart.lines) > len(CURVES):
        raise InputError(
            f"{len(chart.lines)} lines with {len(points)} points: give 1 to {len(CURVES)} lines with points"
        )
    summary = ". ".join(_told(chart, line) for line in chart.lines)
    canvas = Canvas(chart.name, chart.title, chart.subtitle, summary, width)
    top = canvas.top + _GAP
    upright = _scale([*(y for _, y in points), *(value for _, value in chart.levels)], chart.least_span, top)
    places = [x for x, _ in points]
    across = Scale(min(places), max(max(places), min(places) + 1e-9), _LEFT + 8, width - EDGE - 8)
    signs, height = legend(_signs(chart), top + _HEIGHT + 62, width)
    drawn = [*_grid(chart, upright, across, width), *_levels(chart, upright, width)]
    for index, line in enumerate(chart.lines):
        drawn += _drawn(chart, index, line, upright, across)
    return canvas.drawn([*drawn, *signs], height)


def _told(chart: Lines, line: Line) -> str:
    first, last = line.points[0], line.points[-1]
    return f"{line.name}: {first[1]:{chart.form}} at {first[0]:g} to {last[1]:{chart.form}} at {last[0]:g}"


def _scale(values: Sequence[float], least: float, top: float) -> Scale:
    low, high = min(values), max(values)
    lacking = max(0.0, least - (high - low)) / 2
    room = _MARGIN * (high - low + 2 * lacking)
    return Scale(low - lacking - room, high + lacking + room, top + _HEIGHT, top)


def _grid(chart: Lines, upright: Scale, across: Scale, width: int) -> Iterator[str]:
    ticks = upright.ticks(_MOST_TICKS)
    for tick, label in zip(ticks, labels(ticks), strict=True):
        y = upright.place(tick)
        yield f'<path class="grid" d="M{_LEFT} {y:.1f}H{width - EDGE}"/>'
        yield words(_LEFT - 8, round(y + 4, 1), label, "faint", "end")
    are_counts = all(x == int(x) for line in chart.lines for x, _ in line.points)
    ticks = [tick for tick in across.ticks(2 * _MOST_TICKS) if not are_counts or tick == int(tick)]
    for tick, label in zip(ticks, labels(ticks), strict=True):
        yield words(round(across.place(tick), 1), upright.start + 18, label, "faint", "middle")
    yield words((_LEFT + width - EDGE) / 2, upright.start + 38, chart.across, "ink", "middle")
    yield words(_LEFT, upright.stop - 8, chart.upright, "faint")


def _levels(chart: Lines, upright: Scale, width: int) -> Iterator[str]:
    for number, (name, value) in enumerate(chart.levels):
        y = upright.place(value)
        dash = f' style="stroke-dasharray:{_LEVEL_DASHES[number]}"'
        yield f'<path class="base"{dash} d="M{_LEFT} {y:.1f}H{width - EDGE}"><title>{escape(name)}</title></path>'


def _drawn(chart: Lines, index: int, line: Line, upright: Scale, across: Scale) -> Iterator[str]:
    places = [(across.place(x), upright.place(y)) for x, y in line.points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    yield f'<path class="curve-{index}" stroke-dasharray="{_DASHES[index]}" d="M{path}"/>'
    yield from line_of(
        f'<circle class="letter-{index}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>'
        f"{escape(f'{line.name}, {chart.across} {value[0]:g}: {value[1]:{chart.form}}')}</title></circle>"
        for (x, y), value in zip(places, line.points, strict=True)
    )


def _signs(chart: Lines) -> Iterator[tuple[str, str]]:
    for index, line in enumerate(chart.lines):
        dash = f'stroke-dasharray="{_DASHES[index]}"'
        yield f'<path class="curve-{index}" {dash} d="M-11 0h22"/><circle class="letter-{index}" r="3.5"/>', line.name
    for number, (name, value) in enumerate(chart.levels):
        dash = f' style="stroke-dasharray:{_LEVEL_DASHES[number]}"'
        yield f'<path class="base"{dash} d="M-11 0h22"/>', f"{name} ({value:{chart.form}})"
