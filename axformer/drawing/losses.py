"""The losses of a training as lines."""

from collections.abc import Sequence

from axformer.drawing.lines import Line, LineChart, lines_chart
from axformer.wire.finetuning import LossPoint

_LEAST_SPAN = 0.02
"""An axis spans at least this share of a loss, so that a flat curve looks flat."""


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
