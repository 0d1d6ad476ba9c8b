"""What to do with a report: a sentence, and the command that uses what it found, filled in."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from axformer.errors import PlanError
from axformer.intake.checkpoint import Checkpoint
from axformer.plan.plan import Plan
from axformer.tasks.base import Task
from axformer.tasks.causal_lm import CausalLanguageModelling
from axformer.tasks.masked_lm import MaskedLanguageModelling
from axformer.wire.analysis import Advice

PLACEHOLDER = "TRAIN"
"""Stands in a command for training rows that were not given."""


@dataclass(frozen=True)
class Given:
    """The inputs of an analysis as its user wrote them."""

    checkpoint: str
    data: str
    train: str | None = None
    columns: str | None = None
    max_length: int | None = None
    has_points: bool = True
    """Whether points of the task's metric can be certified; not so of a perplexity."""
    on_service: bool = False
    """Whether they are references of a job, so that pruning is another job."""

    def prune(self, output: str, *words: str, set_: Sequence[str] = (), trained: bool = True) -> str:
        """A command that prunes the checkpoint on the same data.

        Args:
            output: name of the directory; on the service there is none.
            words: more options.
            set_: knobs.
            trained: whether training rows are of use.
        """
        train = ["--train", self.train] if trained and self.train is not None else []
        cut = [] if self.max_length is None else [f"max_length={self.max_length}"]
        if not self.has_points and "--method" in words:
            cut.append("within_points=null")
        knobs = [word for knob in (*set_, *cut) for word in ("--set", knob)]
        target = [] if self.on_service else ["--output", output]
        columns = [] if self.columns is None else ["--columns", self.columns]
        given = ["axformer", "submit" if self.on_service else "prune", self.checkpoint, "--data", self.data]
        return shlex.join([*given, *columns, *train, *words, *knobs, *target])


def has_points(task: Task) -> bool:
    """Whether points of a task's metric can be certified."""
    return task.name not in (CausalLanguageModelling.name, MaskedLanguageModelling.name)


def advise(sentence: str, command: str = "") -> Advice:
    """A sentence, with the command that follows from it if one does."""
    return Advice(sentence=sentence, command=command)


def can_drop(checkpoint: Checkpoint, layers: Sequence[int]) -> bool:
    """Whether transformers can build the model without some layers, and at least one is left."""
    full = Plan.full(checkpoint.dimensions)
    if len(layers) >= len(full.layers):
        return False
    try:
        checkpoint.architecture.check_droppable(checkpoint.model.config, full.dropping(layers))
    except PlanError:
        return False
    return True


def in_words(layers: Sequence[int]) -> str:
    """Layers in a sentence."""
    named = ", ".join(map(str, layers))
    return f"layer {named}" if len(layers) == 1 else f"layers {named}"
