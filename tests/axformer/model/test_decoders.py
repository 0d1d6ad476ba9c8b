"""Decoders after surgery still generate: the cache of keys and values counts tokens though attention blocks are gone."""

import pytest
import torch
from transformers import AutoModelForCausalLM

from axformer.architectures.registry import ARCHITECTURES
from axformer.model.compact import compact
from axformer.model.masking import masked
from axformer.plan.elements import attention, ffn, head
from axformer.plan.plan import Plan
from tests.tiny_families import DIMENSIONS, tiny_family_model

DECODERS = sorted(name for name, architecture in ARCHITECTURES.items() if architecture.causal)
PROMPT = torch.tensor([[7, 12, 31, 9]])
REMOVED = (attention(0), ffn(1), head(1, 0), head(2, 1), head(2, 2), head(3, 0), head(3, 1))
"""The first layer's attention is gone; the second keeps three of four heads, the others two, shared evenly or not."""


@pytest.mark.parametrize("family", DECODERS)
def test_a_compact_decoder_generates_what_the_masked_one_does(family: str) -> None:
    model, architecture = tiny_family_model(family, AutoModelForCausalLM), ARCHITECTURES[family]
    architecture.adopt(model)
    plan = Plan.full(DIMENSIONS)
    for element in REMOVED:
        plan = plan.apply(element, top_k=1)
    with masked(model, architecture, plan):
        expected = model.generate(PROMPT, max_new_tokens=12, do_sample=False, pad_token_id=0)
    small = compact(model, architecture, plan)
    assert torch.equal(small.generate(PROMPT, max_new_tokens=12, do_sample=False, pad_token_id=0), expected)
    assert len(set(expected[0].tolist())) > 4, "a model that repeats itself would prove little"


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_a_key_and_value_head_goes_with_its_last_query_head(family: str) -> None:
    model, architecture = tiny_family_model(family, AutoModelForCausalLM), ARCHITECTURES[family]
    architecture.adopt(model)
    whole = Plan.full(DIMENSIONS)
    one = compact(model, architecture, whole.apply(head(0, 0), top_k=1)).model.layers[0].self_attn
    both = (
        compact(model, architecture, whole.apply(head(0, 0), top_k=1).apply(head(0, 1), top_k=1))
        .model.layers[0]
        .self_attn
    )
    assert sum(part.numel() for part in one.k_proj.parameters()) == 2 * sum(
        part.numel() for part in both.k_proj.parameters()
    )
    assert both.num_key_value_groups == 2
