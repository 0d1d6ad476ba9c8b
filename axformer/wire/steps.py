"""Steps: what a run does between two trials or after the last one, and how far it is, for people who wait for it.

A step has no effect on a run. The library reports steps to a callback, a job's process to its worker, and the worker to
everybody who watches the job.
"""

import time
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from axformer.wire.base import Schema, WordOf
from axformer.wire.finetuning import LossPoint

MOST_POINTS = 300
"""A training has about 100 points, and one more for each of at most 100 epochs."""


class StepName(StrEnum):
    """What is done in a step: its name for programs, and its words for people."""

    def __new__(cls, name: str, words: str) -> "StepName":
        """A member that is its name."""
        member = str.__new__(cls, name)
        member._value_, member.words = name, words
        return member

    words: str
    MOMENTS = "moments", "measuring what the blocks receive"
    LEVEL_TABLE = "level_table", "measuring what each size of each block costs"
    RANKING = "ranking", "ranking what may leave"
    REFIT = "refit", "fitting the weights that stay"
    PATH = "path", "measuring the models on the path"
    TRAINING = "training", "training the model"
    PACKAGING = "packaging", "measuring, writing and checking the result"
    REPRESENTING = "representing", "reading the hidden states"
    PROBING = "probing", "fitting probes"
    COMPARING = "comparing", "comparing layers"
    CLUSTERING = "clustering", "clustering dimensions"
    IMPORTANCE = "importance", "measuring the importance of heads"
    DRIFT = "drift", "comparing two models"


class Step(Schema):
    """A step, and how far it is."""

    name: Annotated[StepName | str, WordOf(StepName)]
    done: int = Field(ge=0)
    """Parts done."""
    known: int = Field(ge=1)
    """Parts that there are."""
    detail: str | None = Field(default=None, max_length=200)
    """What is done at this moment, in a few words; null where the name says it all."""
    seconds_left: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """The remaining parts, at the mean time of a part so far; null until one is done."""
    curve: tuple[LossPoint, ...] = Field(default=(), max_length=MOST_POINTS)
    """The losses of a training so far; empty for other steps."""

    @property
    def sentence(self) -> str:
        """The step in one line."""
        detail = "" if self.detail is None else f" ({self.detail})"
        words = StepName[self.name.upper()].words if self.name in list(StepName) else self.name.replace("_", " ")
        count = "" if self.known == 1 else f": {self.done} of {self.known}"
        return f"{words}{detail}{count}{self._losses}"

    @property
    def _losses(self) -> str:
        """The last losses, in words."""
        trained = [point.loss for point in self.curve if point.loss is not None]
        deciding = [point.deciding for point in self.curve if point.deciding is not None]
        named = (("loss", trained), ("on the deciding rows", deciding))
        return "".join(f", {name} {values[-1]:.4f}" for name, values in named if values)


OnStep = Callable[[Step], None]
"""Takes a step as it begins and each time that a part of it is done."""


def ignore(_: Step) -> None:
    """Take no notice of a step."""


def never() -> None:
    """For work that nobody cancels: what others call to see whether to end."""


class Counter:
    """Reports one step part by part, with the time left."""

    def __init__(
        self, name: StepName, known: int, on_step: OnStep = ignore, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name, self._known, self._on_step, self._clock = name, max(known, 1), on_step, clock
        self._began = clock()
        self._done = 0

    def begin(self, detail: str | None = None) -> None:
        """Report that the next part begins."""
        self._report(detail)

    def advance(self, parts: int = 1, detail: str | None = None) -> None:
        """Report that so many parts are done."""
        self._done = min(self._done + parts, self._known)
        self._report(detail)

    def _report(self, detail: str | None) -> None:
        done, known = self._done, self._known
        left = None if not done else (self._clock() - self._began) / done * (known - done)
        self._on_step(Step(name=self._name, done=done, known=known, detail=detail, seconds_left=left))
