"""The path of a pass as a picture: the quality of each model against its size and its estimated latency.

Both halves show the same models, from the untouched one on the left to smaller or faster ones on the right. Quality is the
task's first metric on data that did not decide, or else the loss on the deciding data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from axformer.drawing.scale import Scale, labels
from axformer.drawing.svg import EDGE, WIDTH, Canvas, legend, line_of, words
from axformer.errors import InputError
from axformer.plan.elements import label_of
from axformer.wire.report import PathPoint

CURVE = "path.svg"
"""File name of the picture, which lies next to the card."""
_LEFT, _BETWEEN = 66, 36
_GAP, _HEIGHT = 14, 194
"""Space above both plots, and their height."""
_MARGIN = 0.15
"""Margin around the data, as a share of its range."""
_LEAST_SPAN = 0.02
"""The vertical axis spans at least this share of the untouched model's figure, so that a flat path looks flat."""
_LEAST_LENGTH = 0.001
"""The horizontal axis spans at least this share of the untouched model's value, so that equal models stay together."""
_MOST_TICKS = 5
_TICK_ROOM = 60
"""Least distance between two numbers on the horizontal axis, in units."""
_DATA = {"test": "held-out", "confirming": "confirming", "deciding": "deciding"}
"""Names of the data sets, the least biased first."""


@dataclass(frozen=True)
class _Line:
    """One figure of every model on the path."""

    shade: str
    name: str
    values: Sequence[float]


def path_curve(path: Sequence[PathPoint], width: int = WIDTH) -> str:
    """The SVG text of a finished pass's path.

    Args:
        path: the path of the report, the untouched model first, each point with its estimated latency.
        width: units of the picture.

    Raises:
        InputError: the path is empty, or a point has no latency, as in reports of earlier versions.
    """
    latencies = [point.estimated_latency_ms for point in path if point.estimated_latency_ms is not None]
    if not path or len(latencies) < len(path):
        raise InputError(
            "the report has no path with latencies, so there is no curve to draw; a pass that is run now has one"
        )
    lines = _lines(path)
    sizes = [100 * point.parameters / path[0].parameters for point in path]
    canvas = Canvas("path", "What size and speed cost", _subtitle(path), describe_path(path), width)
    top, half = canvas.top + _GAP, (width - EDGE - _LEFT - _BETWEEN) // 2
    upright = _upright(lines, (top, top + _HEIGHT))
    left, right = (_LEFT, _LEFT + half), (width - EDGE - half, width - EDGE)
    signs, height = legend(_signs(lines), top + _HEIGHT + 66, width)
    drawn = [
        *_heights(upright, (left, right)),
        *_half(path, lines, upright, left, (sizes, "parameters left, %")),
        *_half(path, lines, upright, right, (latencies, "estimated latency, ms")),
        *signs,
    ]
    return canvas.drawn(drawn, height)


def describe_path(path: Sequence[PathPoint]) -> str:
    """The picture in words."""
    return "; ".join(_subtitle(path))


def _subtitle(path: Sequence[PathPoint]) -> list[str]:
    """The lines above the plots."""
    first, last, kept = path[0], path[-1], next(point for point in path if point.kept)
    best = _lines(path)[0]
    if first is last:
        return [f"nothing was accepted: {best.name} {best.values[0]:.4f}"]
    fell = f"{best.values[0]:.4f} → {best.values[-1]:.4f}"
    count = "1 acceptance" if len(path) == 2 else f"{len(path) - 1:,} acceptances"
    text = [f"{count}, down to {_left(first, last)}: {best.name} {fell}"]
    if kept is not last:
        value = best.values[path.index(kept)]
        text.append(f"this model, after trial {kept.seq}: {_left(first, kept)}, {best.name} {value:.4f}")
    return text


def _left(first: PathPoint, point: PathPoint) -> str:
    """The share of the parameters that a model keeps, and of the encoder's parameters if known."""
    size = f"{point.parameters / first.parameters:.1%} of the parameters"
    if first.encoder_parameters is None or point.encoder_parameters is None:
        return size
    return f"{size} ({point.encoder_parameters / first.encoder_parameters:.1%} of the encoder's)"


def _lines(path: Sequence[PathPoint]) -> list[_Line]:
    """The quality figures of each model, the least biased first."""
    lines = []
    for data in ("test", "confirming"):
        figures = [measured for point in path if (measured := getattr(point, data)) is not None]
        if len(figures) == len(path):
            metric = next(name for name in figures[0] if name != "loss")
            name = f"{_DATA[data]} {metric.replace('_', ' ')}"
            lines.append(_Line(data, name, [measured[metric] for measured in figures]))
    return lines or [_Line("deciding", "deciding loss", [point.loss for point in path])]


def _upright(lines: Sequence[_Line], bounds: tuple[float, float]) -> Scale:
    values = [value for line in lines for value in line.values]
    return _axis(values, _LEAST_SPAN * abs(lines[0].values[0]), bounds[1], bounds[0])


def _axis(values: Sequence[float], least: float, start: float, stop: float) -> Scale:
    low, high = min(values), max(values)
    lacking = max(0.0, least - (high - low)) or (0.0 if high > low else 1.0)
    low, high = low - lacking / 2, high + lacking / 2
    room = _MARGIN * (high - low)
    return Scale(low - room, high + room, start, stop)


def _heights(upright: Scale, halves: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Grid lines at round figures through both halves."""
    ticks = upright.ticks(_MOST_TICKS)
    for tick, label in zip(ticks, labels(ticks), strict=True):
        for left, right in halves:
            yield f'<path class="grid" d="M{left} {upright.place(tick):.1f}H{right}"/>'
        yield words(_LEFT - 6, round(upright.place(tick) + 4, 1), label, "faint", "end")


def _half(
    path: Sequence[PathPoint],
    lines: Sequence[_Line],
    upright: Scale,
    ends: tuple[int, int],
    shown: tuple[Sequence[float], str],
) -> Iterator[str]:
    """One plot of values with a name; its axis falls from left to right."""
    (left, right), (values, name) = ends, shown
    across = _axis(values, _LEAST_LENGTH * values[0], right, left)
    ticks = across.ticks(max(2, min(_MOST_TICKS, (right - left) // _TICK_ROOM)))
    for tick, label in zip(ticks, labels(ticks), strict=True):
        yield words(round(across.place(tick), 1), upright.start + 18, label, "faint", "middle")
    yield words((left + right) / 2, upright.start + 38, name, "ink", "middle")
    yield f'<path class="base" d="M{left} {upright.place(lines[0].values[0]):.1f}H{right}"/>'
    for line in reversed(lines):
        yield from _line(path, line, upright, [across.place(value) for value in values])


def _line(path: Sequence[PathPoint], line: _Line, upright: Scale, across: Sequence[float]) -> Iterator[str]:
    places = [(x, upright.place(value)) for x, value in zip(across, line.values, strict=True)]
    yield f'<path class="{line.shade}" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in places)}"/>'
    for point, (x, y) in zip(path, places, strict=True):
        if point.kept:
            yield f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="7"/>'
    yield from line_of(_points(path, line, places))


def _points(path: Sequence[PathPoint], line: _Line, places: Sequence[tuple[float, float]]) -> Iterator[str]:
    for point, value, (x, y) in zip(path, line.values, places, strict=True):
        text = f"{point.seq}: {label_of(point.element, 'untouched')}, {line.name} {value:.4f}, {_cost(point)}"
        yield f'<circle class="{line.shade}-point" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{escape(text)}</title></circle>'


def _cost(point: PathPoint) -> str:
    return f"{point.parameters:,} parameters, about {point.estimated_latency_ms:.2f} ms"


def _signs(lines: Sequence[_Line]) -> Iterator[tuple[str, str]]:
    for line in lines:
        yield f'<path class="{line.shade}" d="M-11 0h22"/>', line.name
    yield '<path class="base" d="M-11 0h22"/>', f"untouched, {lines[0].name}"
    yield '<circle class="ring" r="7"/>', "this model"
