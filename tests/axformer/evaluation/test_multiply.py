"""Packed projections, and activation functions within products, compute what the modules compute."""

import copy

import pytest
import torch
from torch import nn
from transformers.activations import ACT2FN
from transformers.pytorch_utils import Conv1D

from axformer.architectures.registry import architecture_of
from axformer.evaluation.multiply import _PACKED, multiplier, multiply_fast, transposed_product
from axformer.plan.plan import Plan
from tests.family_cases import Case, checkpoint_of


@pytest.mark.parametrize("projection", [nn.Linear(24, 40), nn.Linear(24, 40, bias=False), Conv1D(40, 24)])
@torch.inference_mode()
def test_packed_weights_multiply_alike(projection: nn.Module) -> None:
    inputs = torch.randn(3, 5, 24)
    assert torch.allclose(multiplier(projection)(inputs), projection(inputs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu"])
@pytest.mark.parametrize("family", ["bert", "gpt2"])
@torch.inference_mode()
def test_an_ffn_with_its_activation_function_in_the_product_computes_alike(family: str, activation: str) -> None:
    checkpoint, architecture = checkpoint_of(Case(family, "classification")), architecture_of(family)
    layer = copy.deepcopy(architecture.layers(checkpoint.model)[1])
    weights = architecture.ffn.weights(layer)
    assert weights.activation is not None
    setattr(*weights.activation, ACT2FN[activation])
    fast = copy.deepcopy(layer)
    multiply_fast(fast, Plan.full(checkpoint.dimensions).layers[1], architecture=architecture)
    hidden = torch.randn(4, 7, checkpoint.dimensions.hidden_size)
    slow = architecture.ffn.run(layer, hidden, {})
    assert torch.allclose(architecture.ffn.run(fast, hidden, {}), slow, rtol=1e-5, atol=1e-5)


def test_whole_projections_are_packed_once_and_let_go() -> None:
    projection, kept = nn.Linear(24, 40), len(_PACKED)
    first, second = (multiplier(projection) for _ in range(2))
    assert len(_PACKED) == kept + 1
    assert first.keywords["weight"] is second.keywords["weight"]  # type: ignore[attr-defined]
    del first, second
    assert len(_PACKED) == kept


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "left", "right"), [(30, 5, 7), (1, 4, 4), (0, 3, 2), (6, 0, 2)])
def test_a_transposed_product_is_the_plain_one(rows: int, left: int, right: int, dtype: torch.dtype) -> None:
    x, y = torch.randn(rows, left, dtype=dtype), torch.randn(rows, right, dtype=dtype)
    torch.testing.assert_close(transposed_product(x, y), x.T @ y)
    torch.testing.assert_close(transposed_product(x, x), x.T @ x)
