"""Dynamic int8: compute a model's layers as they will run once they are quantized. It is the nearest to the paper's Q8BERT that
needs no training: that one is trained in int8, and all its weights and activations are quantized, the embeddings too.

Weights are rounded to 8 bits with a scale for each output, activations with a scale for each token, both symmetric. A scale a
token, not a tensor, because a sample's loss must not depend on the samples and the padding beside it. The products are those
of int8 arithmetic; only their sums are kept in float32. Heads, embeddings, softmax and norms stay in float32.
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
from axformer.evaluation.base import Evaluator, Part
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


class Int8Evaluator(Evaluator):
    """Any evaluator, in int8; see :class:`axformer.evaluation.base.Evaluator`."""

    precision = "int8"

    def __init__(self, evaluator: Evaluator, model: Any, architecture: Architecture) -> None:
        self._evaluator = evaluator
        self._model = model
        self._architecture = architecture

    @property
    def total(self) -> int:
        return self._evaluator.total

    def parts(self, plan: Plan) -> Iterator[Part]:
        parts = self._evaluator.parts(plan)
        while True:
            with in_int8(self._model, self._architecture):
                part = next(parts, None)
            if part is None:
                return
            yield part

    def accept(self, plan: Plan) -> None:
        self._evaluator.accept(plan)

    def see_first(self, samples: Tensor | None) -> None:
        self._evaluator.see_first(samples)


def int8_linear(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A linear map in int8.

    Inputs whose weights are all 0 do not count for the scale, so that a masked input is the same as one that is not there.

    Args:
        hidden: shape (..., inputs).
        weight: shape (outputs, inputs).
        bias: shape (outputs,).
    """
    inputs, input_scale = _quantize(hidden * (weight != 0).any(dim=0))
    weights, weight_scale = _quantize(weight)
    output = (inputs @ weights.T) * input_scale * weight_scale.T
    return output if bias is None else output + bias


def _quantize(values: Tensor) -> tuple[Tensor, Tensor]:
    """Integers as float32, and the scale of each row."""
    scale = values.abs().amax(dim=-1, keepdim=True).clamp(min=torch.finfo(values.dtype).tiny * LARGEST) / LARGEST
    return (values / scale).round(), scale


def _forward(projection: Any, hidden: Tensor) -> Tensor:
    weight = projection.weight.T if isinstance(projection, Conv1D) else projection.weight
    return int8_linear(hidden, weight, projection.bias)
