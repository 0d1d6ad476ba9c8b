"""A compact model holds no weight that its outputs do not depend on."""

from copy import deepcopy

import pytest
import torch
from transformers import AutoModelForSequenceClassification

import axformer.auto  # noqa: F401 - some heads look up their base model
from axformer.architectures.registry import ARCHITECTURES, architecture_of
from axformer.model.compact import compact
from axformer.plan.plan import LayerPlan, Plan
from tests.tiny_families import tiny_family_model

WITHOUT_EFFECT = ("attention.self.key.bias", "k_lin.bias")
"""Added to all scores of a query alike, which softmax does not see; checkpoints have them all the same."""
FOR_ANOTHER_TASK = ("mask_emb",)
"""XLNet's, for the query stream with which it generates text."""
WITH_SEGMENTS = {"xlnet"}
"""Families with weights that are read only where the input says which segment a token is of."""


def _with_gaps(plan: Plan) -> Plan:
    """A layer without attention, one without feed-forward block, one without either, and one without heads."""
    no_attention = {"attention": False, "heads": ()}
    no_ffn = {"ffn": False, "neurons": ()}
    gaps = (no_attention, no_ffn, no_attention | no_ffn, {"heads": ()})
    layers: list[LayerPlan] = [layer.model_copy(update=gap) for layer, gap in zip(plan.layers, gaps, strict=True)]
    return Plan(layers=tuple(layers))


@pytest.mark.parametrize("has_gaps", [False, True])
@pytest.mark.parametrize("family", sorted(ARCHITECTURES))
def test_every_weight_of_a_compact_model_is_read(family: str, has_gaps: bool) -> None:
    architecture, model = (
        architecture_of(family),
        deepcopy(tiny_family_model(family, AutoModelForSequenceClassification)),
    )
    architecture.prepare(model)
    whole = Plan.full(architecture.dimensions(model.config))
    small = compact(model, architecture, _with_gaps(whole) if has_gaps else whole)
    torch.manual_seed(0)
    ids = torch.randint(5, 20, (2, 9))
    segments = {"token_type_ids": torch.tensor([[0] * 4 + [1] * 5] * 2)} if family in WITH_SEGMENTS else {}
    small(input_ids=ids, attention_mask=torch.ones_like(ids), **segments).logits.square().sum().backward()
    unread = [name for name, weight in small.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert [name for name in unread if not name.endswith(WITHOUT_EFFECT + FOR_ANOTHER_TASK)] == []
