"""A look before the pass: is the untouched model better than guessing on the rows that decide?

Where it is not, the labels are mostly read wrongly: they count the classes in another order, stand in another column, or are
meant for another head. A pass would not notice. It lowers the loss that it is given, and calls that a gain.

Two things stop a run. Either another order of the classes fits the answers reliably better. Or the loss is reliably above that
of guessing, or the accuracy reliably below that of the most frequent answer, while the answers have nothing to do with the
labels. That last condition lets two kinds of good models pass: those that are surer of themselves than they are right, whose
loss may be far above guessing, and those that look for a rare class, which are right less often than who never finds it. A
model that always gives the most frequent answer, as happens with small sets, is not below it. Tags, endings, answers to
questions and texts only stop a run where the model's answers go against them; else it is told. *Reliably* means by three
standard errors.
"""

import math
from dataclasses import dataclass

import numpy as np

from axformer.errors import CheckpointError, PoorModelError
from axformer.evaluation.plain import Predictions
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.reporting.first_look import first_look
from axformer.scores.confidence import Figures
from axformer.scores.scoring import figures_of, table_of
from axformer.tasks.guess import Guess
from axformer.tasks.standing import Standing, is_reliably_positive, order_in_words

_WORSE = "the untouched model is worse than guessing"


@dataclass(frozen=True)
class Look:
    """What the untouched model makes of a data set."""

    source: str
    """Where the data came from."""
    rows: int
    figures: Figures
    """Its loss and metrics."""
    guess: Guess
    standing: Standing
    losses: np.ndarray
    """Of the samples."""
    labels_as: str | None = None
    """How the column of labels was read; null where there was nothing to decide."""

    @property
    def sentence(self) -> str:
        """The data and the figures, for people."""
        return first_look(self.rows, self.guess.shares, self.figures, self.guess.figures, self.labels_as)

    @property
    def is_worse(self) -> bool:
        """Whether its loss is reliably above that of guessing, or its accuracy below that of the most frequent answer."""
        if is_reliably_positive(self.losses - self.guess.losses):
            return True
        right, usual = self.standing.right, self.guess.right
        return right is not None and usual is not None and is_reliably_positive(usual - right)

    @property
    def note(self) -> str | None:
        """What is odd, though it does not stop the run; null where nothing is."""
        if self.reason is not None or not self.is_worse:
            return self.reason
        if not self._follows(1):
            return f"{_WORSE}; look at {self.standing.causes}"
        return (
            f"{_WORSE} by its loss or its accuracy, but its answers do follow the labels: it may be surer of itself than it is "
            f"right, or made to find a rare class; where that is not so, look at {self.standing.causes}"
        )

    @property
    def reason(self) -> str | None:
        """Why the model does not fit the data; null where it does."""
        order, names = self.standing.order, self.standing.names
        head = _WORSE if self.is_worse else "the untouched model is often wrong"
        if order is not None:
            return (
                f"{head}, because the labels seem to count the classes in another order: the model's label2id says "
                f"{order_in_words(names)}; the labels fit {order_in_words(names, order.classes)} (accuracy "
                f"{order.accuracy:.4f}); give labels by name, count them as the model does, or correct label2id and id2label "
                "in the checkpoint's config.json"
            )
        stops = not self._follows(1) if self.standing.is_bar else self._follows(-1)
        return f"{head}; look at {self.standing.causes}" if self.is_worse and stops else None

    def _follows(self, sign: int) -> bool:
        """Whether the answers reliably follow the labels, or with ``sign`` -1 go against them."""
        return self.standing.agreement is not None and is_reliably_positive(sign * self.standing.agreement)

    def check(self) -> None:
        """Refuse a model that does not fit the data.

        Raises:
            PoorModelError: for the reason that there is.
        """
        if self.reason is not None:
            raise PoorModelError(
                f"data file '{self.source}': {self.reason} ({self.sentence}); to go on with the model as it is, say "
                "--accept-poor-model (the knob accept_poor_model=true)"
            )


def look_at(checkpoint: Checkpoint, data: DataSet, predictions: Predictions) -> Look:
    """Compare the untouched model on a data set with guessing.

    Args:
        predictions: what it makes of the data.

    Raises:
        CheckpointError: its loss is not a finite number.
    """
    task, samples, config = checkpoint.task, data.samples, checkpoint.model.config
    losses = samples.per_sample(predictions.losses).double().numpy()
    if not math.isfinite(losses.mean()):
        raise CheckpointError(
            f"the model's loss on the validation set is {losses.mean()}; check its weights and labels"
        )
    table = table_of(samples.per_sample(predictions.losses), predictions.answers, task, samples)
    return Look(
        source=data.rows.source,
        rows=len(data.rows),
        figures=figures_of(table, task),
        guess=task.guess(samples.encoded, config),
        standing=task.standing(predictions.answers, samples.encoded, config),
        losses=losses,
        labels_as=samples.encoded.labels_as,
    )
