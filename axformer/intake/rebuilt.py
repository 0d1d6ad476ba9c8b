"""Check that a model in memory computes what transformers makes of its configuration and its weights.

Results are built from these two. What is changed in a model beside them (a replaced activation, a hook, a ``forward`` of one's
own) would take part in every decision of a pass, and be missing from its result.
"""

from typing import Any

import torch
from torch import Tensor

from axformer.errors import CheckpointError
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.model.compact import compact
from axformer.plan.plan import Plan

ROWS = 4
"""Model rows that both models compute."""
TOLERANCE = 1e-3
"""The largest allowed difference of logits, as a share of the largest logit. Another order of the same sums comes to 1e-5."""


@torch.inference_mode()
def check_rebuilt(checkpoint: Checkpoint, data: DataSet) -> None:
    """Compare a model with one that was built anew, on some rows.

    Raises:
        CheckpointError: their logits differ.
    """
    model, batch = checkpoint.model, data.samples.batches[0]
    inputs = {name: values[:ROWS] for name, values in batch.inputs.items()}
    anew = compact(model, checkpoint.architecture, Plan.full(checkpoint.dimensions))
    found, expected = (_logits(one(**inputs), inputs, pooled=checkpoint.task.pooled) for one in (model, anew))
    for name, values in found.items():
        difference = float((values - expected[name]).abs().max())
        if not difference <= TOLERANCE * max(1.0, float(expected[name].abs().max())):
            raise CheckpointError(
                f"the model computes something else than a {checkpoint.head.name} with its configuration and its weights: its "
                f"{name} differ by {difference:.2g}; leave out what was changed in it, such as hooks, activations or a forward "
                "of its own, for results cannot have it"
            )


def _logits(output: Any, inputs: dict[str, Tensor], *, pooled: bool) -> dict[str, Tensor]:
    """The logits of an output; where there are some for each token, without those of padding."""
    logits = {name: values for name, values in output.items() if name.endswith("logits")}
    return logits if pooled else {name: values[inputs["attention_mask"].bool()] for name, values in logits.items()}
