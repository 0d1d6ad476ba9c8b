"""The evaluator that is obviously right: a whole forward pass of the whole model over every sample."""

from typing import Any

import torch
from torch import Tensor

from axformer.architectures.base import Architecture
from axformer.batches import Samples
from axformer.masking import masked
from axformer.plan import Plan
from axformer.tasks.base import Task


class PlainEvaluator:
    """Runs everything for every plan; see :class:`axformer.evaluation.base.Evaluator`."""

    precision = "float32"

    def __init__(self, model: Any, architecture: Architecture, task: Task, samples: Samples) -> None:
        self._model = model
        self._architecture = architecture
        self._task = task
        self._samples = samples

    def losses(self, plan: Plan) -> Tensor:
        with masked(self._model, self._architecture, plan):
            losses = torch.empty(len(self._samples))
            with torch.inference_mode():
                for batch in self._samples.batches:
                    losses[batch.rows] = self._task.losses(self._model(**batch.inputs), batch)
        return losses

    def accept(self, plan: Plan) -> None:
        """Nothing is remembered."""


@torch.inference_mode()
def predict(model: Any, samples: Samples) -> Tensor:
    """A model's output for every sample, in the order of the data, shape (samples, labels)."""
    outputs: Tensor | None = None
    for batch in samples.batches:
        logits = model(**batch.inputs).logits
        if outputs is None:
            outputs = logits.new_empty((len(samples), *logits.shape[1:]))
        outputs[batch.rows] = logits
    assert outputs is not None, "samples hold at least one batch"
    return outputs
