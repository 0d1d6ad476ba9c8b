"""The operations that a plan leaves are those that its compact model carries out."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import axformer.auto  # noqa: F401 - some heads build their base model by its configuration
from axformer.architectures.registry import ARCHITECTURES
from axformer.model.compact import compact
from axformer.model.operations import Operations
from axformer.plan.elements import attention, ffn, hard_attention, head, neurons
from axformer.plan.plan import Plan
from tests.family_cases import Case, checkpoint_of, some_plan
from tests.tiny_families import DIMENSIONS

TOKENS = 12
ROWS = 3
POSITIONS_BESIDE = {"albert", "deberta-v2", "xlnet", "electra"}
"""Families that also multiply positions, or embeddings to their width; both are left out of the estimate."""


def operations_of(case: Case, lengths: list[int]) -> Operations:
    checkpoint = checkpoint_of(case)
    pooled = checkpoint.task.pooled
    return Operations(checkpoint.model, checkpoint.architecture, pooled=pooled, lengths=torch.tensor(lengths))


def measured(case: Case, plan: Plan) -> int:
    """Operations of the compact model, counted while it runs at all positions."""
    checkpoint = checkpoint_of(case)
    model = compact(checkpoint.model, checkpoint.architecture, plan)
    model.config._attn_implementation = "eager"
    ids = torch.full((ROWS, TOKENS), 5)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(input_ids=ids, attention_mask=torch.ones_like(ids), output_hidden_states=True)
    return int(counter.get_total_flops())


CASES = [Case(family, "classification") for family in sorted(set(ARCHITECTURES) - POSITIONS_BESIDE)]
CASES += [Case("bert", "token_classification"), Case("gpt2", "causal_lm"), Case("bert", "masked_lm")]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_counted_is_what_is_carried_out(case: Case) -> None:
    counted = operations_of(case, [TOKENS] * ROWS)
    for plan in (Plan.full(DIMENSIONS), some_plan(1), some_plan(2), some_plan(3)):
        assert counted.left(plan) == measured(case, plan)


@pytest.mark.parametrize("family", sorted(ARCHITECTURES))
def test_each_removal_saves_operations_and_hard_attention_none(family: str) -> None:
    counted = operations_of(Case(family, "classification"), [3, TOKENS])
    plan = Plan.full(DIMENSIONS)
    for element in (head(0, 1), neurons(1, 8, 20), attention(2), ffn(2)):
        smaller = plan.apply(element, top_k=2)
        assert 0 < counted.left(smaller) < counted.left(plan)
        plan = smaller
    assert counted.left(plan.apply(hard_attention(0), top_k=2)) == counted.left(plan)


def test_each_row_counts_with_its_own_length() -> None:
    case = Case("bert", "classification")
    apart = [operations_of(case, [length]).left(some_plan(1)) for length in (3, TOKENS)]
    assert operations_of(case, [3, TOKENS]).left(some_plan(1)) == sum(apart)
