"""The reference evaluator, which is obviously correct: a forward pass of the whole model over every sample."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from axformer.architectures.base import Architecture
from axformer.data.batches import Batch, Samples
from axformer.evaluation.base import Evaluator, Part, by_sample
from axformer.model.masking import masked
from axformer.plan.plan import Plan
from axformer.tasks.base import Task


class PlainEvaluator(Evaluator):
    """Runs the whole masked model for every plan; see :class:`axformer.evaluation.base.Evaluator`."""

    precision = "float32"

    def __init__(self, model: Any, architecture: Architecture, task: Task, samples: Samples) -> None:
        self._model = model
        self._architecture = architecture
        self._task = task
        self._samples = samples

    @property
    def total(self) -> int:
        return len(self._samples)

    def parts(self, plan: Plan) -> Iterator[Part]:
        return by_sample(self._rows(plan), self._samples)

    def accept(self, plan: Plan) -> None:
        """Do nothing, since nothing is cached."""

    def see_first(self, samples: Tensor | None) -> None:
        """Do nothing: samples always come in the order of the batches."""

    def _rows(self, plan: Plan) -> Iterator[Part]:
        for batch in self._samples.batches:
            with torch.inference_mode(), masked(self._model, self._architecture, plan):
                losses = self._task.losses(self._model(**batch.inputs), batch)
            yield Part(batch.rows.cpu(), losses.cpu())


@dataclass(frozen=True)
class Predictions:
    """The losses and answers of a model on a data set, one for each model row, in the order of the data."""

    losses: Tensor
    """Shape (model rows,), on the CPU."""
    answers: list[Any]
    """The task's answer for each output."""


def run(model: Any, batch: Batch, **options: Any) -> Any:
    """The output of a model for a batch, in float32, so that losses are not rounded to the 16 bits that logits may have.

    ``options`` go to the model. Its hidden states, a tuple, keep their number format.
    """
    output = model(**batch.inputs, **options)
    for name, values in output.items():
        if isinstance(values, Tensor) and values.is_floating_point():
            output[name] = values.float()
    return output


@torch.inference_mode()
def predict(model: Any, task: Task, samples: Samples) -> Predictions:
    """Run a model over a whole data set, keeping only the loss and the task's answer of each output."""
    losses = torch.empty(len(samples.sample_of_row))
    answers: list[Any] = [None] * len(losses)
    for batch in samples.batches:
        output = run(model, batch)
        losses[batch.rows.cpu()] = task.losses(output, batch).cpu()
        for row, answer in zip(batch.rows.tolist(), task.answers(output, batch), strict=True):
            answers[row] = answer
    return Predictions(losses, answers)
