"""The reference evaluator, which is obviously correct: a forward pass of the whole model over every sample."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from axformer.architectures.base import Architecture
from axformer.data.batches import Samples
from axformer.evaluation.base import Evaluator, Part, by_sample
from axformer.model.masking import masked
from axformer.plan.plan import Plan
from axformer.tasks.base import Task


class PlainEvaluator(Evaluator):
    """Runs the whole masked model for every plan; see :class:`axformer.evaluation.base.Evaluator`."""

    def __init__(self, model: Any, architecture: Architecture, task: Task, samples: Samples) -> None:
        self._model = model
        self._architecture = architecture
        self._task = task
        self.samples = samples

    def parts(self, plan: Plan) -> Iterator[Part]:
        return by_sample(self._rows(plan), self.samples)

    def accept(self, plan: Plan) -> None:
        """Do nothing, since nothing is cached."""

    def see_first(self, samples: Tensor | None) -> None:
        """Do nothing: samples always come in the order of the batches."""

    def _rows(self, plan: Plan) -> Iterator[Part]:
        for batch in self.samples.batches:
            with torch.inference_mode(), masked(self._model, self._architecture, plan):
                losses = self._task.losses(self._model(**batch.inputs), batch)
            yield Part(batch.rows.cpu(), losses.cpu())
