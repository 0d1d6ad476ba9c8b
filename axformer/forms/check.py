"""Compare a form with the model that it was made of, on a whole data set."""

from typing import Any

import torch
from torch import Tensor

from axformer.data.batches import Batch, Samples
from axformer.errors import ArtifactError

PER_TOKEN = 3
"""Dimensions of outputs that hold one row of numbers a token."""
SPANS = ("start_logits", "end_logits")
"""Outputs that hold one number a token."""


@torch.inference_mode()
def compare_outputs(model: Any, other: Any, samples: Samples) -> float:
    """The largest absolute difference of two models' outputs, padding left out.

    Not a number where one of them gives back something that is not a number.

    Args:
        model, other: what can be called with the inputs of a batch and gives back named outputs; their devices may differ.
            The outputs of ``other`` are compared, and ``model`` must give them too.
        samples: all of them go through both, batch by batch.

    Raises:
        ArtifactError: an output is missing or has another shape.
    """
    worst = torch.zeros(())
    for batch in samples.batches:
        there = batch.inputs["attention_mask"].bool().cpu()
        expected, found = (_outputs(one, batch) for one in (model, other))
        for name, values in found.items():
            wanted = expected.get(name)
            if wanted is None or wanted.shape != values.shape:
                shape = "missing" if wanted is None else f"of shape {tuple(wanted.shape)}"
                raise ArtifactError(f"the form's {name} are of shape {tuple(values.shape)}, the model's are {shape}")
            difference = (wanted - values).abs()
            is_per_token = name in SPANS or values.dim() == PER_TOKEN
            worst = torch.maximum(worst, (difference[there] if is_per_token else difference).max())
    return float(worst)


def _outputs(model: Any, batch: Batch) -> dict[str, Tensor]:
    """The tensors that a model gives back, on the CPU."""
    given = model(**{name: values.to(model.device) for name, values in batch.inputs.items()})
    return {name: values.float().cpu() for name, values in given.items() if isinstance(values, Tensor)}
