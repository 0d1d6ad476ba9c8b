"""The losses of a training as a picture: on the training rows at every hundredth, on the deciding rows after every epoch."""

from collections.abc import Sequence

from axformer.drawing.lines import Line, Lines, Point, lines_chart
from axformer.drawing.svg import WIDTH
from axformer.errors import InputError
from axformer.wire.finetuning import LossPoint

_HEIGHT = 130
_LEAST_SPAN = 0.02
"""The axis spans at least this share of the largest loss, so that a flat curve looks flat."""


def has_losses(curve: Sequence[LossPoint]) -> bool:
    """Whether there is a line to draw."""
    return any(len(line) > 1 for line in _lines(curve).values())


def loss_curve(curve: Sequence[LossPoint], width: int = WIDTH) -> str:
    """The SVG text of a training's losses so far.

    Args:
        curve: its points, in order.
        width: units of the picture.

    Raises:
        InputError: there are not two points of one line.
    """
    if not has_losses(curve):
        raise InputError("the training has fewer than two losses, so there is no curve to draw")
    lines = [Line(name, line) for name, line in _lines(curve).items() if line]
    told = [f"{line.name}: {line.points[0][1]:.4f} at first, {line.points[-1][1]:.4f} at last" for line in lines]
    least = _LEAST_SPAN * max(abs(loss) for line in lines for _, loss in line.points)
    title = "Losses of the training"
    chart = Lines("losses", title, told, "epoch", "loss", lines, least_span=least, height=_HEIGHT)
    return lines_chart(chart, width)


def _lines(curve: Sequence[LossPoint]) -> dict[str, list[Point]]:
    training = [(point.epoch, point.loss) for point in curve if point.loss is not None]
    deciding = [(point.epoch, point.deciding) for point in curve if point.deciding is not None]
    return {"training rows": training, "deciding rows": deciding}
