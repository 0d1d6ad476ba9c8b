"""Dynamic int8: compute a model's layers as they will run after quantization.

Without training, this is the closest to the paper's Q8BERT, which is trained in int8 with all weights and activations
quantized, including embeddings.

Weights are rounded to 8 bits with one scale for each output, activations with one scale for each token, both symmetrically. The
scale is per token, not per tensor, because a sample's loss must not depend on the other samples and the padding of its batch.
The products are those of int8 arithmetic; only their sums are computed in float32. Heads, embeddings, softmax and norms stay in
float32.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from axformer.architectures.base import Architecture
from axformer.architectures.shared import SharedLinear
from axformer.evaluation.base import Part
from axformer.evaluation.prefix import PrefixEvaluator
from axformer.plan.plan import Plan

LARGEST = 127
"""The largest magnitude of symmetric 8-bit integers."""


@contextmanager
def in_int8(model: Any, architecture: Architecture) -> Iterator[None]:
    """Let the linear modules of a model's layers compute in int8 inside the ``with`` block."""
    projections = [
        module
        for layer in architecture.layers(model)
        for module in layer.modules()
        if isinstance(module, nn.Linear | Conv1D | SharedLinear)
    ]
    try:
        for projection in projections:
            projection.forward = partial(_forward, projection)  # type: ignore[method-assign]
        yield
    finally:
        for projection in projections:
            projection.__dict__.pop("forward", None)


class Int8Evaluator(PrefixEvaluator):
    """Measures in int8; see :class:`axformer.evaluation.base.Evaluator`."""

    precision = "int8"

    def parts(self, plan: Plan) -> Iterator[Part]:
        parts = super().parts(plan)
        while True:
            with in_int8(self._model, self._architecture):
                part = next(parts, None)
            if part is None:
                return
            yield part


def _forward(projection: Any, hidden: Tensor) -> Tensor:
    """A linear map in int8, from (..., inputs) to (..., outputs).

    Inputs whose weights are all 0 do not affect the scale, so masking an input is the same as removing it.
    """
    weight = projection.weight.T if isinstance(projection, Conv1D) else projection.weight
    inputs, input_scale = _quantize(hidden * (weight != 0).any(dim=0))
    weights, weight_scale = _quantize(weight)
    output = (inputs @ weights.T) * input_scale * weight_scale.T
    return output if projection.bias is None else output + projection.bias


def _quantize(values: Tensor) -> tuple[Tensor, Tensor]:
    """Round to integers, stored as float32, with a scale for each row."""
    scale = values.abs().amax(dim=-1, keepdim=True).clamp(min=torch.finfo(values.dtype).tiny * LARGEST) / LARGEST
    return (values / scale).round(), scale
