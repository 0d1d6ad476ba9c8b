"""Learning from a teacher, the untouched model: its predictions, and the hidden states of the layers that are left.

loss = (1 - a) * task + a * T^2 * KL(teacher || student at temperature T) + b * difference of the hidden states

The first two terms are those of Hinton et al. 2015 (Distilling the Knowledge in a Neural Network, section 2). For numbers the
divergence is the squared difference, as in the task's own loss; a question has one for its start and one for its end; tags and
tokens are averaged over a row. The third is that of Sun et al. 2019 (Patient Knowledge Distillation, equation 7): the squared
distance between normalised hidden states, without the last layer, whose output only the head reads. They take ``[CLS]``; here
it is the mean over all tokens, since not every task reads ``[CLS]``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from axformer.data.batches import Batch, Samples
from axformer.data.encoding import UNLABELLED, Encoded
from axformer.scores.measured import run
from axformer.tasks.base import Task
from axformer.tasks.divergence import OutcomeKind, Predicted, divergence
from axformer.wire.finetuning import FinetuneSettings

CACHE_BYTES = 1 << 30
"""Most main memory for the teacher's predictions. They fit where a prediction has few outcomes; those of language models over
their vocabulary mostly do not, and are computed again in every epoch."""


class Objective(Protocol):
    """What a training minimises."""

    def loss(self, model: Any, batch: Batch) -> Tensor:
        """The loss of a batch, a scalar."""


@dataclass(frozen=True)
class TaskLoss:
    """The task's own loss, the same as in the pass."""

    task: Task

    def loss(self, model: Any, batch: Batch) -> Tensor:
        """See :class:`Objective`."""
        return self.task.losses(run(model, batch), batch).mean()


class Taught:
    """The loss of a model that learns from a teacher; see the module."""

    def __init__(self, task: Task, teacher: Any, kept: Sequence[int], settings: FinetuneSettings) -> None:
        """Learn from a model in evaluation mode, whose layers ``kept``, from the bottom, the student still has."""
        self._task = task
        self._teacher = teacher
        self._kept = kept
        self._settings = settings
        self._known: Mapping[int, Tensor] = {}

    def remember(self, samples: Samples, check_cancelled: Callable[[], None], most_bytes: int = CACHE_BYTES) -> None:
        """Run the teacher once on all rows, in an order that depends on the data alone, so that later epochs need not.

        Nothing is remembered if it does not fit, if the number of outcomes depends on the padding, or if the teacher must run
        anyway for its hidden states.

        Args:
            samples: the training rows.
            check_cancelled: called before each batch.
            most_bytes: of the predictions.
        """
        if self._settings.hidden_weight > 0:
            return
        known: dict[int, Tensor] = {}
        left, outcomes = most_bytes, None
        for batch in samples.batches:
            check_cancelled()
            predicted, _ = self._taught(batch)
            left -= predicted.values.nbytes
            outcomes = outcomes or predicted.values.shape[-1]
            if left < 0 or outcomes != predicted.values.shape[-1]:
                return
            values = predicted.values.cpu()
            for place, row in enumerate(batch.rows.tolist()):
                known[row] = values[predicted.row.cpu() == place]
        is_padded = int(samples.lengths.min()) < int(samples.lengths.max())
        if is_padded and {batch.tokens for batch in samples.batches} == {outcomes}:
            return  # an outcome for each token; the batches of the training are padded to other lengths
        self._known = known

    def loss(self, model: Any, batch: Batch) -> Tensor:
        """See :class:`Objective`."""
        settings = self._settings
        output = run(model, batch, output_hidden_states=settings.hidden_weight > 0)
        student = self._task.predicted(output, batch)
        teacher, states = self._recalled(batch, student) if self._known else self._taught(batch)
        differences = divergence(teacher, student, len(batch.rows), settings.temperature)
        if teacher.outcome is OutcomeKind.NUMBERS:
            differences = 2 * differences
        loss = settings.teacher_weight * differences.mean()
        if settings.teacher_weight < 1:
            loss = loss + (1 - settings.teacher_weight) * self._task.losses(output, batch).mean()
        if settings.hidden_weight > 0:
            loss = loss + settings.hidden_weight * self._distance(output.hidden_states, states, batch)
        return loss

    @torch.no_grad()
    def _taught(self, batch: Batch) -> tuple[Predicted, Sequence[Tensor]]:
        """The teacher's predictions, and its hidden states if they count."""
        if self._settings.hidden_weight == 0:
            return self._task.predicted(run(self._teacher, batch), batch), ()
        output = run(self._teacher, batch, output_hidden_states=True)
        return self._task.predicted(output, batch), output.hidden_states

    def _recalled(self, batch: Batch, like: Predicted) -> tuple[Predicted, Sequence[Tensor]]:
        values = torch.cat([self._known[row] for row in batch.rows.tolist()]).to(like.values.device)
        return replace(like, values=values), ()

    def _distance(self, student: Sequence[Tensor], teacher: Sequence[Tensor], batch: Batch) -> Tensor:
        """The squared distance of the normalised states, averaged over the kept layers but the last, and over all tokens.

        With a single layer left there is nothing to compare, and the distance is 0.
        """
        tokens = batch.inputs["attention_mask"].flatten(end_dim=-2) != 0
        total = torch.zeros((), device=student[0].device)
        below = self._kept[:-1]
        for place, layer in enumerate(below):
            ours, theirs = (
                functional.normalize(states[index + 1][tokens].float(), dim=-1)
                for states, index in ((student, place), (teacher, layer))
            )
            total = total + (ours - theirs).square().sum(dim=-1).mean() / len(below)
        return total


def for_teacher(encoded: Encoded, tokenizer: Any) -> Encoded:
    """Rows without labels, marked for the teacher: tasks that predict for tokens do so at each one that is not special."""
    if encoded.choices > 1:
        return encoded
    marks = [
        [
            UNLABELLED if special else 0
            for special in tokenizer.get_special_tokens_mask(ids, already_has_special_tokens=True)
        ]
        for ids in encoded.features["input_ids"]
    ]
    return replace(encoded, labels=marks, per_token=True)
