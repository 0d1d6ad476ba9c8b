"""The path of a pass as a picture: how good each model on it is, by its size and by its estimated latency.

Both halves show the same models, the untouched one on the left, and what is farther right is smaller or faster. How good they
are is told by the task's first metric on data that did not decide, where there was some, else by the loss on what decided.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from axformer.drawing.marks import ACCENT, GOOD, OPEN, SOFT
from axformer.drawing.scale import Scale, labels
from axformer.drawing.svg import Canvas, words
from axformer.errors import InputError
from axformer.scores.confidence import first_metric
from axformer.wire.report import PathPoint

CURVE = "path.svg"
"""The file of the picture, beside the card."""
_WIDTH, _HEIGHT = 766, 368
_TOP, _BOTTOM = 90, 284
_HALVES = ((66, 388), (424, 746))
"""Left and right end of both plots."""
_MARGIN = 0.15
"""Room around what is shown, as a share of it."""
_LEAST_SPAN = 0.02
"""The upright axis spans at least this share of the untouched model's figure, so that a flat path looks flat."""
_LEAST_LENGTH = 0.001
"""The other axis spans at least this share of what the untouched model has, so that models of one size stand together."""
_MOST_TICKS = 5
_LETTER = 6.4
"""Width of a letter, about."""
_SHADES = {
    "grid": ("stroke:#e6e9ed", "stroke:#21262d"),
    "base": (
        f"stroke:{SOFT.light};stroke-dasharray:6 4;fill:none",
        f"stroke:{SOFT.dark};stroke-dasharray:6 4;fill:none",
    ),
    "ring": (f"stroke:{GOOD.light};stroke-width:2;fill:none", f"stroke:{GOOD.dark};stroke-width:2;fill:none"),
    **{
        shade: (
            f"stroke:{colour.light};stroke-width:2;stroke-linejoin:round;fill:none",
            f"stroke:{colour.dark};stroke-width:2;stroke-linejoin:round;fill:none",
        )
        for shade, colour in (("test", ACCENT), ("confirming", OPEN), ("deciding", SOFT))
    },
    **{
        f"{shade}-point": (f"fill:{colour.light};stroke:#fff", f"fill:{colour.dark};stroke:#0d1117")
        for shade, colour in (("test", ACCENT), ("confirming", OPEN), ("deciding", SOFT))
    },
}
_DATA = {"test": "held-out", "confirming": "confirming", "deciding": "deciding"}
"""What data is called, that which judges best first."""


@dataclass(frozen=True)
class _Line:
    """One figure of every model on the path."""

    shade: str
    name: str
    values: Sequence[float]


def path_curve(path: Sequence[PathPoint]) -> str:
    """The SVG text of a finished pass's path.

    Args:
        path: of the report, the untouched model first, each with its estimated latency.

    Raises:
        InputError: there is no model, or one without its latency, as in reports of earlier versions.
    """
    latencies = [one.estimated_latency_ms for one in path if one.estimated_latency_ms is not None]
    if not path or len(latencies) < len(path):
        raise InputError(
            "the report has no path with latencies, so there is no curve to draw; a pass that is run now has one"
        )
    lines = _lines(path)
    upright = _upright(lines)
    sizes = [100 * one.parameters / path[0].parameters for one in path]
    canvas = Canvas("path", "What size and speed cost", describe_path(path), _WIDTH, _HEIGHT, _SHADES)
    halves = ((sizes, "parameters left, %"), (latencies, "estimated latency, ms"))
    return canvas.drawn(
        [
            words(_HALVES[0][0], 26, "What size and speed cost", "ink title"),
            *(words(_HALVES[0][0], 46 + 16 * place, line, "faint") for place, line in enumerate(_told(path))),
            *_heights(upright),
            *(
                part
                for ends, half in zip(_HALVES, halves, strict=True)
                for part in _half(path, lines, upright, ends, *half)
            ),
            *_legend(lines),
        ]
    )


def describe_path(path: Sequence[PathPoint]) -> str:
    """The picture in words."""
    return "; ".join(_told(path))


def _told(path: Sequence[PathPoint]) -> list[str]:
    """What stands above the plots, a line each."""
    first, last, kept = path[0], path[-1], next(one for one in path if one.kept)
    best = _lines(path)[0]
    if first is last:
        return [f"nothing was accepted: {best.name} {best.values[0]:.4f}"]
    fell = f"{best.values[0]:.4f} → {best.values[-1]:.4f}"
    count = "1 acceptance" if len(path) == 2 else f"{len(path) - 1:,} acceptances"
    told = [f"{count}, down to {_left(first, last)}: {best.name} {fell}"]
    if kept is not last:
        value = best.values[path.index(kept)]
        told.append(f"this model, after trial {kept.seq}: {_left(first, kept)}, {best.name} {value:.4f}")
    return told


def _left(first: PathPoint, point: PathPoint) -> str:
    """The share of the parameters that a model has, and of those in the transformer layers where that is known."""
    size = f"{point.parameters / first.parameters:.1%} of the parameters"
    if first.encoder_parameters is None or point.encoder_parameters is None:
        return size
    return f"{size} ({point.encoder_parameters / first.encoder_parameters:.1%} of the encoder's)"


def _lines(path: Sequence[PathPoint]) -> list[_Line]:
    """The figures that tell how good each model is, that of the best judge first."""
    lines = []
    for data in ("test", "confirming"):
        figures = [one for one in (getattr(point, data) for point in path) if one is not None]
        if len(figures) == len(path):
            metric = first_metric(figures[0])
            name = f"{_DATA[data]} {metric.replace('_', ' ')}"
            lines.append(_Line(data, name, [one[metric] for one in figures]))
    return lines or [_Line("deciding", "deciding loss", [point.loss for point in path])]


def _upright(lines: Sequence[_Line]) -> Scale:
    values = [value for line in lines for value in line.values]
    return _axis(values, _LEAST_SPAN * abs(lines[0].values[0]), _BOTTOM, _TOP)


def _axis(values: Sequence[float], least: float, start: float, stop: float) -> Scale:
    low, high = min(values), max(values)
    lacking = max(0.0, least - (high - low)) or (0.0 if high > low else 1.0)
    low, high = low - lacking / 2, high + lacking / 2
    room = _MARGIN * (high - low)
    return Scale(low - room, high + room, start, stop)


def _heights(upright: Scale) -> Iterator[str]:
    """Lines at round figures through both halves."""
    ticks = upright.ticks(_MOST_TICKS)
    for tick, label in zip(ticks, labels(ticks), strict=True):
        for left, right in _HALVES:
            yield f'<path class="grid" d="M{left} {upright.place(tick):.1f}H{right}"/>'
        yield words(_HALVES[0][0] - 6, round(upright.place(tick) + 4, 1), label, "faint", "end")


def _half(
    path: Sequence[PathPoint],
    lines: Sequence[_Line],
    upright: Scale,
    ends: tuple[int, int],
    values: Sequence[float],
    name: str,
) -> Iterator[str]:
    """One plot; its axis falls from left to right."""
    left, right = ends
    across = _axis(values, _LEAST_LENGTH * values[0], right, left)
    ticks = across.ticks(_MOST_TICKS)
    for tick, label in zip(ticks, labels(ticks), strict=True):
        yield words(round(across.place(tick), 1), _BOTTOM + 18, label, "faint", "middle")
    yield words((left + right) / 2, _BOTTOM + 38, name, "ink", "middle")
    yield f'<path class="base" d="M{left} {upright.place(lines[0].values[0]):.1f}H{right}"/>'
    for line in reversed(lines):
        yield from _line(path, line, upright, [across.place(value) for value in values])


def _line(path: Sequence[PathPoint], line: _Line, upright: Scale, across: Sequence[float]) -> Iterator[str]:
    places = [(x, upright.place(value)) for x, value in zip(across, line.values, strict=True)]
    yield f'<path class="{line.shade}" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in places)}"/>'
    for point, value, (x, y) in zip(path, line.values, places, strict=True):
        if point.kept:
            yield f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="7"/>'
        told = f"{point.seq}: {point.element or 'untouched'}, {line.name} {value:.4f}, {_cost(point)}"
        yield f'<circle class="{line.shade}-point" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{escape(told)}</title></circle>'


def _cost(point: PathPoint) -> str:
    return f"{point.parameters:,} parameters, about {point.estimated_latency_ms:.2f} ms"


def _legend(lines: Sequence[_Line]) -> Iterator[str]:
    x, y = float(_HALVES[0][0]), _HEIGHT - 18
    entries: list[tuple[str, Callable[[float], str]]] = [
        *((line.name, _stroke(line.shade)) for line in lines),
        (f"untouched, {lines[0].name}", _stroke("base")),
        ("this model", lambda x: f'<circle class="ring" cx="{x + 11:g}" cy="{y - 4}" r="7"/>'),
    ]
    for name, mark in entries:
        yield f"{mark(x)}{words(x + 28, y, name, 'ink')}"
        x += 48 + _LETTER * len(name)


def _stroke(shade: str) -> Callable[[float], str]:
    return lambda x: f'<path class="{shade}" d="M{x:g} {_HEIGHT - 22}h22"/>'
