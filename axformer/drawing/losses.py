"""Losses as lines: of one training, and of several passes side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from axformer.drawing.lines import Line, LineChart, lines_chart
from axformer.drawing.svg import WIDTH
from axformer.errors import InputError
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


@dataclass(frozen=True)
class LossCourse:
    """The losses of one pass."""

    name: str
    steps: Sequence[tuple[int, float]]
    """Trial and loss of the base and of each acceptance, in order."""
    trials: int
    """Trials of the pass so far, including the base."""


def comparison(courses: Sequence[LossCourse], width: int = WIDTH) -> str:
    """The SVG text of the loss of each model over its trials.

    Args:
        courses: up to six passes; one without measurements has no steps and no curve.
        width: units of the picture.

    Raises:
        InputError: no pass has measurements.
    """
    first = next((course.steps[0][1] for course in courses if course.steps), None)
    if first is None:
        raise InputError(
            "none of these jobs has been measured yet, so there is nothing to draw; wait for the first trial"
        )
    chart = LineChart(
        "courses",
        "Validation loss of the model, trial by trial",
        [],
        "trial",
        "loss",
        [Line(course.name, _until_now(course)) for course in courses],
        least_span=_LEAST_SPAN * abs(first),
        height=240,
        is_stepped=True,
    )
    return lines_chart(chart, width)


def _until_now(course: LossCourse) -> list[tuple[float, float]]:
    return [*course.steps, (course.trials - 1, course.steps[-1][1])] if course.steps else []
