"""Agreement between the forms of a model and the model in memory, over a whole data set."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from axformer.data.batches import Batch, Samples
from axformer.errors import ArtifactError
from axformer.forms.selfcheck import largest_of
from axformer.model.number_format import compared
from axformer.scores.measured import Measured, measure_together
from axformer.tasks.base import Task


@dataclass(frozen=True)
class Agreement:
    """The comparison of one form with the model in memory."""

    difference: float
    """The largest absolute difference of a logit."""
    largest: float
    """The size of the largest logit of the model in memory."""
    measured: Measured
    """The form on the data set."""


def compare_outputs(
    reference: Any, forms: Mapping[str, Any], task: Task, samples: Samples
) -> tuple[Measured, dict[str, Agreement]]:
    """Run forms, and the model they were made from, over a data set, batch by batch.

    Args:
        reference: the model in memory.
        forms: the forms by name; they are called like the model, and each may be on a different device.
        task: the model's task.
        samples: the data set.

    Returns:
        The model in memory on the data set, and the agreement of each form with it.

    Raises:
        ArtifactError: a form returns values that are not finite numbers.
    """
    differences = _Differences(task)
    measured = measure_together({_REFERENCE: reference, **forms}, task, samples, differences.see)
    largest = differences.largest_expected
    agreements = {name: Agreement(differences.largest.get(name, 0.0), largest, measured[name]) for name in forms}
    return measured[_REFERENCE], agreements


_REFERENCE = ""
"""The name of the model in memory, which comes first for each batch."""


class _Differences:
    """The largest difference of each form's logits from those of the model in memory."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._expected: dict[str, Tensor] = {}
        self.largest: dict[str, float] = {}
        self.largest_expected = 0.0

    def see(self, name: str, output: Any, batch: Batch) -> None:
        """Compare the outputs of a form for a batch."""
        logits = self._logits(output, batch)
        if name == _REFERENCE:
            self._expected = logits
            self.largest_expected = max([self.largest_expected, *map(largest_of, logits.values())])
            return
        for kind, values in self._expected.items():
            difference = torch.where(logits[kind] == values, 0.0, (logits[kind] - values).abs())
            if not difference.isfinite().all():
                raise ArtifactError(f"the form '{name}' gives back {kind} that are not numbers; it was not published")
            self.largest[name] = max(self.largest.get(name, 0.0), float(difference.max()))

    def _logits(self, output: Mapping[str, Any], batch: Batch) -> dict[str, Tensor]:
        """The logits of an output, on the CPU. For heads with an answer for every token, those of padding are left out."""
        logits = {name: values.cpu() for name, values in compared(output).items()}
        return compared(logits, None if self._task.pooled else batch.inputs["attention_mask"].bool().cpu())
