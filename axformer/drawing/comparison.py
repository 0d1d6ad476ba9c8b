"""Several passes in one picture: the loss of each model over its trials."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from axformer.drawing.chart import LEFT, Plot, axis, frame, numbers, steps
from axformer.drawing.scale import Scale
from axformer.drawing.svg import EDGE, WIDTH, Canvas, line_of, words
from axformer.errors import InputError

_GAP, _HEIGHT = 20, 240
_LETTER = 12
"""Space for a letter at the end of a curve."""
_DASHES = ("", "8 3", "2 3", "10 3 2 3", "5 5", "12 4")
"""Curves differ in dashes as well as in colour."""


@dataclass(frozen=True)
class LossCourse:
    """The losses of one pass."""

    letter: str
    name: str
    steps: Sequence[tuple[int, float]]
    """Trial and loss of the base and of each acceptance, in order."""
    trials: int
    """Trials of the pass so far, including the base."""


def comparison(courses: Sequence[LossCourse], width: int = WIDTH) -> str:
    """The SVG text of two to six passes.

    Args:
        courses: the passes; one without measurements has no steps and no curve.
        width: units of the picture.

    Raises:
        InputError: no pass has measurements.
    """
    losses = [loss for course in courses for _, loss in course.steps]
    if not losses:
        raise InputError(
            "none of these jobs has been measured yet, so there is nothing to draw; wait for the first trial"
        )
    summary = "; ".join(_described(course) for course in courses if course.steps)
    canvas = Canvas("courses", "Validation loss of the model, trial by trial", [], summary, width)
    top = canvas.top + _GAP
    most = max(course.trials for course in courses if course.steps)
    across = Scale(0, max(most - 1, 1), LEFT + 8, width - EDGE - 8 - _LETTER * len(courses))
    plot = Plot(across, axis(losses, losses[0], (top, top + _HEIGHT)))
    drawn = [*frame(plot), *line_of(_curves(courses, plot)), *_letters(courses, plot), *numbers(plot)]
    return canvas.drawn(drawn, top + _HEIGHT + 36)


def _described(course: LossCourse) -> str:
    return f"{course.letter}, {course.name}: {course.steps[0][1]:.4f} → {course.steps[-1][1]:.4f} in {course.trials:,} trials"


def _curves(courses: Sequence[LossCourse], plot: Plot) -> Iterator[str]:
    for index, course in enumerate(courses):
        if course.steps:
            path = steps(course.steps, plot, plot.across.place(course.trials - 1))
            look = f'class="curve-{index}" stroke-dasharray="{_DASHES[index]}"'
            yield f'<path {look} d="{path}"><title>{escape(_described(course))}</title></path>'


def _letters(courses: Sequence[LossCourse], plot: Plot) -> Iterator[str]:
    ends: list[tuple[float, float]] = []
    for index, course in enumerate(courses):
        if course.steps:
            x, y = plot.across.place(course.trials - 1) + 4, plot.up.place(course.steps[-1][1]) + 4
            # Behind other letters, where curves end together.
            while any(abs(x - other) < _LETTER and abs(y - at) < _LETTER for other, at in ends):
                x += _LETTER
            ends.append((x, y))
            yield words(round(x, 1), round(y, 1), course.letter, f"letter-{index}")
