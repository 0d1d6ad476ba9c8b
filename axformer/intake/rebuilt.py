"""Check before a pass, on some rows, that a model computes what its result will.

A model in memory must compute what transformers makes of its configuration and its weights.

Results are built from these two. What is changed in a model beside them (a replaced activation, a hook, a ``forward`` of one's
own) would take part in every decision of a pass, and be missing from its result.
"""

from typing import Any

import torch
from torch import Tensor

from axformer.data.batches import assemble
from axformer.data.encoding import Encoded
from axformer.errors import CheckpointError
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.model.compact import compact
from axformer.model.number_format import compared, computing_in, not_numbers
from axformer.plan.plan import Plan

COMPARED = 4
"""Model rows that both models compute."""
ROWS = 32
"""Most model rows on which damage is looked for; it shows on any row."""
TOKENS = 1024
"""Largest number of tokens of all these rows, including padding, since the output of a language model has its whole vocabulary
for each token."""
TOLERANCE = 1e-3
"""The largest allowed difference of logits, as a share of the largest logit. Another order of the same sums comes to 1e-5."""


@torch.inference_mode()
def check_rebuilt(checkpoint: Checkpoint, data: DataSet) -> None:
    """Compare a model with one that was built anew, on some rows.

    Raises:
        CheckpointError: their logits differ.
    """
    model, batch = checkpoint.model, data.samples.batches[0]
    inputs = {name: values[:COMPARED] for name, values in batch.inputs.items()}
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


@torch.inference_mode()
def check_own_format(checkpoint: Checkpoint, data: DataSet) -> None:
    """Compute some rows in the number format of the weight files, in which results are used.

    Raises:
        CheckpointError: the model overflows there, while a pass, which computes in float32, would see nothing of it.
    """
    if checkpoint.dtype is torch.float32:
        return
    model, inputs = checkpoint.model, check_inputs(data.samples.encoded, checkpoint.tokenizer, checkpoint.model.device)
    with computing_in(model, checkpoint.dtype):
        reason = not_numbers(_logits(model(**inputs), inputs, pooled=checkpoint.task.pooled))
    if reason is not None:
        raise CheckpointError(reason)


def check_inputs(encoded: Encoded, tokenizer: Any, device: Any) -> dict[str, Tensor]:
    """At most ``ROWS`` model rows that fit into ``TOKENS``, spread over the data; at least one, and just one if rows go through
    the model one at a time."""
    lengths = encoded.lengths
    fitting = 1 if encoded.padding.alone else max(1, TOKENS // (max(lengths) * encoded.choices))
    rows = list(range(0, len(lengths), -(-len(lengths) // min(ROWS, fitting))))
    return assemble(encoded, rows, tokenizer, device).inputs


def _logits(output: Any, inputs: dict[str, Tensor], *, pooled: bool) -> dict[str, Tensor]:
    """The logits of an output; where there are some for each token, without those of padding."""
    return compared(output, None if pooled else inputs["attention_mask"].bool())
