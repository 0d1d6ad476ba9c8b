"""The check before a pass: is the untouched model better than guessing on the deciding rows?

If it is not, the labels are usually misread: they number the classes in another order, are in another column, or belong to
another head. A pass would not notice this, because it only lowers the given loss and counts that as a gain.

A run is stopped in two cases. In the first, another order of the classes fits the answers reliably better. In the second, the
loss is reliably above that of guessing, or the accuracy reliably below that of the most frequent answer, and in addition the
answers do not follow the labels. This last condition admits two kinds of good models: overconfident ones, whose loss may be far
above guessing, and those that detect a rare class, which may be right less often than a model that never detects it. A model
that always gives the most frequent answer, as happens with small sets, is not below its accuracy.

With tags, endings, answers to questions and texts, a run is stopped only if the model's answers go against the labels;
otherwise there is a note. *Reliably* means by three standard errors.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from axformer.config import RunConfig
from axformer.data.columns import OWN_ANSWERS
from axformer.data.rows import Rows
from axformer.errors import CheckpointError, PoorModelError
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet, prepare
from axformer.scores.confidence import Figures
from axformer.scores.measured import Measured, measure
from axformer.tasks.guess import Guess
from axformer.tasks.standing import LabelAgreement, is_reliably_positive
from axformer.wire.metrics import first_metric
from axformer.wire.report import Report

MOST_TRAINING_ROWS = 1000
"""With so many, an order that would lower the accuracy by a few points is found."""
_WORSE = "the untouched model is worse than guessing"


@dataclass(frozen=True)
class Look:
    """The untouched model on a data set, compared with guessing."""

    source: str
    """The source of the data."""
    rows: int
    figures: Figures
    """Loss and metrics of the model."""
    guess: Guess
    standing: LabelAgreement
    losses: np.ndarray
    """The loss of each sample."""
    voters: np.ndarray
    """The samples that tell what is reliable, one for each different input: bool, shape (samples,)."""
    labels_as: str | None = None
    """How the column of labels was read; None if there was only one way."""

    @property
    def sentence(self) -> str:
        """The data and the figures in a sentence for users."""
        return first_look(self.rows, self.guess.shares, self.figures, self.guess.figures, self.labels_as)

    @property
    def is_worse(self) -> bool:
        """Whether the loss is reliably above that of guessing, or the accuracy reliably below that of the most frequent
        answer."""
        if is_reliably_positive((self.losses - self.guess.losses)[self.voters]):
            return True
        right, usual = self.standing.right, self.guess.right
        return right is not None and usual is not None and is_reliably_positive((usual - right)[self.voters])

    @property
    def note(self) -> str | None:
        """A description of anything unusual, whether or not it stops the run; None if there is nothing."""
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
        """Why the model does not fit the data, which stops the run; None if it fits."""
        misread = self.standing.misread
        head = _WORSE if self.is_worse else "the untouched model is often wrong"
        if misread is not None:
            return f"{head}, because {misread}"
        stops = not self._follows(1) if self.standing.is_bar else self._follows(-1)
        return f"{head}; look at {self.standing.causes}" if self.is_worse and stops else None

    def _follows(self, sign: int) -> bool:
        """Whether the answers reliably follow the labels, or with ``sign`` -1 reliably go against them."""
        agreement = self.standing.agreement
        return agreement is not None and is_reliably_positive(sign * agreement[self.voters])

    def check(self) -> None:
        """Refuse a model that does not fit the data.

        Raises:
            PoorModelError: there is a :attr:`reason`.
        """
        if self.reason is not None:
            raise PoorModelError(
                f"data file '{self.source}': {self.reason} ({self.sentence}); to go on with the model as it is, say "
                "--accept-poor-model (the knob accept_poor_model=true)"
            )


def doubt_about(checkpoint: Checkpoint, untouched: Measured) -> str | None:
    """Why figures on a data set say nothing: other labels fit the untouched model's answers reliably better. None if none do.

    Args:
        untouched: the untouched model on the data.
    """
    return checkpoint.task.standing(untouched.answers, untouched.samples.encoded, checkpoint.model.config).misread


def check_training_rows(checkpoint: Checkpoint, rows: Rows, config: RunConfig) -> None:
    """Refuse training rows whose labels seem to count the classes in another order than the model: it would learn that order.

    Args:
        checkpoint: a model that was fine-tuned for these classes.
        rows: the training rows, of which ``MOST_TRAINING_ROWS`` are looked at, drawn at random.
        config: how rows are read.

    Raises:
        PoorModelError: another order fits the model's answers reliably better.
    """
    drawn = torch.randperm(len(rows), generator=torch.Generator().manual_seed(config.seed))[:MOST_TRAINING_ROWS]
    data = prepare(rows.at(sorted(drawn.tolist())), checkpoint, config)
    doubt = doubt_about(checkpoint, measure(checkpoint.model, checkpoint.task, data.samples))
    if doubt is not None:
        raise PoorModelError(f"training data '{rows.source}': {doubt}")


def look_at(checkpoint: Checkpoint, data: DataSet, untouched: Measured) -> Look:
    """Compare the untouched model on a data set with guessing.

    Args:
        untouched: the model on the data.

    Raises:
        CheckpointError: the model's loss is not finite.
    """
    task, samples, config = checkpoint.task, data.samples, checkpoint.model.config
    losses = untouched.losses.double().numpy()
    if not math.isfinite(losses.mean()):
        raise CheckpointError(
            f"the model's loss on the validation set is {losses.mean()}; check its weights and labels"
        )
    return Look(
        source=data.rows.source,
        rows=len(data.rows),
        figures=untouched.figures,
        guess=task.guess(samples.encoded, config),
        standing=task.standing(untouched.answers, samples.encoded, config),
        losses=losses,
        voters=samples.voters.numpy(),
        labels_as=samples.encoded.labels_as,
    )


_SHOWN = 4
"""Most classes that are named, by frequency."""
_NAME_SHOWN = 40
"""Most characters of a class name that are shown."""


def first_look(
    rows: int,
    shares: Mapping[str, float] | None,
    figures: Mapping[str, float],
    guess: Mapping[str, float],
    labels_as: str | None,
) -> str:
    """Summarize the data and the untouched model in one line.

    For example "872 rows, 51 % positive / 49 % negative, labels read as names of classes; the untouched model: accuracy
    0.9106, loss 0.2534 (guessing: accuracy 0.5092, loss 0.6931)".

    Args:
        rows: number of rows.
        shares: frequency of each class, the most frequent first; None if answers are not classes.
        figures: loss and metrics of the untouched model.
        guess: loss of guessing, and its accuracy if there is one.
        labels_as: how the column of labels was read; None if there was only one way.
    """
    if labels_as == OWN_ANSWERS:
        answered = "" if shares is None else f", which your model answers with {_shares(shares)}"
        return f"{rows:,} rows without labels{answered}; figures on them say how many answers stay"
    metric = first_metric(figures)
    classes = "" if shares is None else f", {_shares(shares)}"
    model = f"{metric.replace('_', ' ')} {figures[metric]:.4f}, loss {figures['loss']:.4f}"
    bar = "".join(f"{name} {guess[name]:.4f}, " for name in (metric,) if name in guess)
    read = "" if labels_as is None else f", labels read as {labels_as}"
    return f"{rows:,} rows{classes}{read}; the untouched model: {model} (guessing: {bar}loss {guess['loss']:.4f})"


def first_look_of(report: Report) -> str | None:
    """The summary for the report of a finished run; None for reports of earlier versions."""
    data = report.data["validation"]
    if data is None or data.guess is None:
        return None
    return first_look(data.rows, data.shares, report.base.validation, data.guess, data.labels_as)


def _shares(shares: Mapping[str, float]) -> str:
    shown = [f"{share:.0%} {name[:_NAME_SHOWN]}".replace("%", " %", 1) for name, share in list(shares.items())[:_SHOWN]]
    more = len(shares) - len(shown)
    return " / ".join(shown) + (f" and {more} more" if more else "")
