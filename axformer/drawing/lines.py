"""Lines through measured points, with lines across for what they are compared with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from axformer.drawing.marks import CURVES
from axformer.drawing.scale import LEFT, Axes, Scale, fitted
from axformer.drawing.svg import EDGE, WIDTH, Canvas, legend, line_of, words
from axformer.errors import InputError
from axformer.wire.finetuning import LossPoint

_GAP = 26
"""Space above the plot."""
_MARGIN = 0.08
"""Margin around the data, as a share of its range."""
_MOST_TICKS = 6
_DASHES = ("", "8 3", "2 3", "10 3 2 3", "5 5", "12 4")
"""Lines differ in dashes as well as in colour."""
_LEVEL_DASHES = ("9 3", "5 4", "1 4")
"""Of the lines across, three at most."""
_LEAST_SPAN = 0.02
"""An axis spans at least this share of a loss, so that a flat curve looks flat."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """One line."""

    name: str
    points: Sequence[Point]
    """None where nothing was measured yet; the line keeps its look, and is not drawn."""


@dataclass(frozen=True)
class LineChart:
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
    height: float = 190
    """Of the plot."""


def lines_chart(chart: LineChart, width: int = WIDTH) -> str:
    """The SVG text of some lines.

    Raises:
        InputError: there is no point, or there are too many lines.
    """
    points = [point for line in chart.lines for point in line.points]
    if not points or len(chart.lines) > len(CURVES):
        raise InputError(
            f"{len(chart.lines)} lines with {len(points)} points: give 1 to {len(CURVES)} lines with points"
        )
    summary = ". ".join(_told(chart, line) for line in chart.lines if line.points)
    canvas = Canvas(chart.name, chart.title, chart.subtitle, summary, width)
    top = canvas.top + _GAP
    axes = _axes(chart, points, top, width)
    signs, height = legend(_signs(chart), top + chart.height + 62, width)
    drawn = [*_frame(chart, axes)]
    for index, line in enumerate(chart.lines):
        if line.points:
            drawn += line_of(_drawn(chart, index, line, axes))
    return canvas.drawn([*drawn, *signs], height)


def _told(chart: LineChart, line: Line) -> str:
    first, last = line.points[0], line.points[-1]
    return f"{line.name}: {first[1]:{chart.form}} at {first[0]:g} to {last[1]:{chart.form}} at {last[0]:g}"


def _axes(chart: LineChart, points: Sequence[Point], top: float, width: int) -> Axes:
    values = [*(y for _, y in points), *(value for _, value in chart.levels)]
    places = [x for x, _ in points]
    across = Scale(min(places), max(max(places), min(places) + 1e-9), LEFT + 8, width - EDGE - 8)
    upright = fitted(values, chart.least_span, _MARGIN, top + chart.height, top)
    return Axes(across, upright, LEFT, width - EDGE)


def _frame(chart: LineChart, axes: Axes) -> Iterator[str]:
    yield from axes.grid(_MOST_TICKS)
    are_counts = all(x == int(x) for line in chart.lines for x, _ in line.points)
    yield from axes.numbers(are_counts=are_counts)
    yield axes.name(chart.across)
    yield words(LEFT, axes.upright.stop - 8, chart.upright, "faint")
    for number, (name, value) in enumerate(chart.levels):
        yield axes.level(value, _level_dash(number), name)


def _level_dash(number: int) -> str:
    return f' style="stroke-dasharray:{_LEVEL_DASHES[number]}"'


def _drawn(chart: LineChart, index: int, line: Line, axes: Axes) -> Iterator[str]:
    look = f'class="curve-{index}" stroke-dasharray="{_DASHES[index]}"'
    places = [axes.place(*point) for point in line.points]
    yield f'<path {look} d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in places)}"/>'
    for (x, y), value in zip(places, line.points, strict=True):
        told = f"{line.name}, {chart.across} {value[0]:g}: {value[1]:{chart.form}}"
        yield f'<circle class="letter-{index}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{escape(told)}</title></circle>'


def _signs(chart: LineChart) -> Iterator[tuple[str, str]]:
    for index, line in enumerate(chart.lines):
        if line.points:
            path = f'<path class="curve-{index}" stroke-dasharray="{_DASHES[index]}" d="M-11 0h22"/>'
            yield f'{path}<circle class="letter-{index}" r="3.5"/>', line.name
    for number, (name, value) in enumerate(chart.levels):
        yield f'<path class="base"{_level_dash(number)} d="M-11 0h22"/>', f"{name} ({value:{chart.form}})"


def loss_curve(curve: Sequence[LossPoint]) -> str | None:
    """The SVG text of a training's losses: on the training rows at every hundredth, on the deciding rows after every epoch.

    Args:
        curve: its points, in order.

    Returns:
        None until there are two points of one line.
    """
    training = [(point.epoch, point.loss) for point in curve if point.loss is not None]
    deciding = [(point.epoch, point.deciding) for point in curve if point.deciding is not None]
    if max(len(training), len(deciding)) < 2:
        return None
    lines = [Line("training rows", training), Line("deciding rows", deciding)]
    told = [
        f"{line.name}: {line.points[0][1]:.4f} at first, {line.points[-1][1]:.4f} at last"
        for line in lines
        if line.points
    ]
    least = _LEAST_SPAN * max(abs(loss) for line in lines for _, loss in line.points)
    title = "Losses of the training"
    return lines_chart(LineChart("losses", title, told, "epoch", "loss", lines, least_span=least, height=130))
