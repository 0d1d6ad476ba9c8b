"""The evaluator that is obviously right: a whole forward pass of the whole model over every sample."""

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
    """Runs everything for every plan; see :class:`axformer.evaluation.base.Evaluator`."""

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
        """Nothing is remembered."""

    def see_first(self, samples: Tensor | None) -> None:
        """All samples are seen in any case, in the order of the batches."""

    def _rows(self, plan: Plan) -> Iterator[Part]:
        for batch in self._samples.batches:
            with torch.inference_mode(), masked(self._model, self._architecture, plan):
                losses = self._task.losses(self._model(**batch.inputs), batch)
            yield Part(batch.rows.cpu(), losses.cpu())


@dataclass(frozen=True)
class Predictions:
    """What a model makes of a data set, model row by model row in the order of the data."""

    losses: Tensor
    """Shape (model rows,), on the CPU."""
    answers: list[Any]
    """What its task keeps of each output."""


def run(model: Any, batch: Batch) -> Any:
    """What a model gives back for a batch, in float32: a loss is not rounded to the 16 bits that its logits may have."""
    output = model(**batch.inputs)
    for name, values in output.items():
        if isinstance(values, Tensor) and values.is_floating_point():
            output[name] = values.float()
    return output


@torch.inference_mode()
def predict(model: Any, task: Task, samples: Samples) -> Predictions:
    """Run a model over a whole data set, keeping of each output no more than the task asks for."""
    losses = torch.empty(len(samples.sample_of_row))
    answers: list[Any] = [None] * len(losses)
    for batch in samples.batches:
        output = run(model, batch)
        losses[batch.rows.cpu()] = task.losses(output, batch).cpu()
        for place, answer in zip(batch.rows.tolist(), task.answers(output, batch), strict=True):
            answers[place] = answer
    return Predictions(losses, answers)
