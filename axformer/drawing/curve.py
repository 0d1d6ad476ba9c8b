"""The path of a run as a picture: what each model costs in the task's first metric, against how many times as fast it is.

Both axes are changes against the untouched model. The line goes through the models that no other beats in both; the metric is
that of data that did not decide, or else the loss on the deciding data.
"""

from collections.abc import Iterator, Sequence
from html import escape

from axformer.drawing.scale import LEFT, Axes, fitted
from axformer.drawing.svg import EDGE, WIDTH, Canvas, legend, line_of, words
from axformer.errors import InputError
from axformer.plan.elements import label_of
from axformer.scores.path_costs import Costs, PathModel, costs_of
from axformer.wire.report import PathPoint

CURVE = "path.svg"
"""File name of the picture, which lies next to the card."""
_GAP, _HEIGHT = 26, 230
"""Space above the plot, and its height."""
_MARGIN = 0.1
"""Margin around the data, as a share of its range."""
_LEAST_SPAN = 1.0
"""The vertical axis spans at least one point, or one percent, so that a flat path looks flat."""
_LEAST_LENGTH = 0.01
"""The horizontal axis spans at least this many times, so that models of one speed stay together."""
_MOST_TICKS = 6


def path_curve(path: Sequence[PathPoint], width: int = WIDTH) -> str:
    """The SVG text of a run's path.

    Args:
        path: the untouched model first; while the run goes on no model is the kept one.
        width: units of the picture.

    Raises:
        InputError: the path is empty.
    """
    if not path:
        raise InputError("the report has no path, so there is no curve to draw; a pass that is run now has one")
    lines = costs_of(path)
    canvas = Canvas("path", "What speed costs", _subtitle(path, lines[0]), describe_path(path), width)
    top = canvas.top + _GAP
    axes = _axes(path, lines, top, width)
    signs, height = legend(_signs(lines), top + _HEIGHT + 66, width)
    drawn = [*_frame(lines[0], axes)]
    shown = {model.point.seq for model in lines[0].models if model.is_best}
    for line in reversed(lines):
        drawn += _line(line, axes, shown)
    return canvas.drawn([*drawn, *signs], height)


def describe_path(path: Sequence[PathPoint]) -> str:
    """The picture in words."""
    return "; ".join(_subtitle(path, costs_of(path)[0]))


def _subtitle(path: Sequence[PathPoint], costs: Costs) -> list[str]:
    """The lines above the plot."""
    last, kept = costs.models[-1], next((model for model in costs.models if model.point.kept), None)
    if len(path) == 1:
        return [f"nothing was accepted: {costs.name} {costs.models[0].value:.4f}"]
    count = "1 smaller model" if len(path) == 2 else f"{len(path) - 1:,} smaller models"
    text = [f"{count}, up to {_gain(path[0], last)}: {_change(costs, last)}"]
    if kept is not None and kept is not last:
        text.append(f"this model, after trial {kept.point.seq}: {_gain(path[0], kept)}, {_change(costs, kept)}")
    return text


def _gain(first: PathPoint, model: PathModel) -> str:
    """How fast and how small a model is."""
    point = model.point
    size = f"{model.times:.2f} times as fast with {point.parameters / first.parameters:.1%} of the parameters"
    if first.encoder_parameters is None or point.encoder_parameters is None:
        return size
    return f"{size} ({point.encoder_parameters / first.encoder_parameters:.1%} of the encoder's)"


def _change(costs: Costs, model: PathModel) -> str:
    return f"{costs.name} {model.change:+.2f} {costs.unit}"


def _axes(path: Sequence[PathPoint], lines: Sequence[Costs], top: float, width: int) -> Axes:
    changes = [model.change for line in lines for model in line.models]
    right = width - EDGE
    across = fitted([point.estimated_speedup for point in path], _LEAST_LENGTH, _MARGIN, LEFT, right)
    return Axes(across, fitted([*changes, 0.0], _LEAST_SPAN, _MARGIN, top + _HEIGHT, top), LEFT, right)


def _frame(costs: Costs, axes: Axes) -> Iterator[str]:
    """Grid lines and round numbers along both axes, and the untouched model's line."""
    yield from axes.grid(_MOST_TICKS)
    yield from axes.numbers()
    yield axes.name("times as fast, estimated from operations")
    yield words(axes.left, axes.upright.stop - 6, f"change, {costs.unit}", "faint")
    yield axes.level(0.0)


def _line(costs: Costs, axes: Axes, shown: set[int]) -> Iterator[str]:
    """The line through the models of the front, and on the least biased data a quiet dot for every other one."""
    places = {model.point.seq: axes.place(model.times, model.change) for model in costs.models}
    front = sorted((model for model in costs.models if model.point.seq in shown), key=lambda model: model.times)
    ends = "L".join("{:.1f} {:.1f}".format(*places[model.point.seq]) for model in front)
    yield f'<path class="{costs.data}" d="M{ends}"/>'
    for model in costs.models:
        if model.point.kept:
            x, y = places[model.point.seq]
            yield f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="7"/>'
    yield from line_of(_mark(costs, model, places[model.point.seq], model.point.seq in shown) for model in costs.models)


def _mark(costs: Costs, model: PathModel, place: tuple[float, float], is_shown: bool) -> str:
    (x, y), point = place, model.point
    text = (
        f"{point.seq}: {label_of(point.element, 'untouched')}, {_change(costs, model)} ({model.value:.4f}), "
        f"{model.times:.2f} times as fast, {point.parameters:,} parameters"
    )
    shade, radius = f"{costs.data}-point", 4
    if not is_shown:
        shade, radius = f"{costs.data}-point beaten", 3
    return (
        f'<circle class="{shade}" data-seq="{point.seq}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}">'
        f"<title>{escape(text)}</title></circle>"
    )


def _signs(lines: Sequence[Costs]) -> Iterator[tuple[str, str]]:
    for line in lines:
        yield f'<path class="{line.data}" d="M-11 0h22"/><circle class="{line.data}-point" r="4"/>', line.name
    yield f'<circle class="{lines[0].data}-point beaten" r="3"/>', "another is as fast and as good"
    yield '<path class="base" d="M-11 0h22"/>', "untouched"
    if any(model.point.kept for model in lines[0].models):
        yield '<circle class="ring" r="7"/>', "this model"
