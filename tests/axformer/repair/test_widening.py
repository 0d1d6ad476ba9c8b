"""Weights of a compact model go back to their places in the whole one, for every family and plan."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axformer.model.compact import compact
from axformer.repair.recovery import put_back
from tests.family_cases import Case, all_cases, checkpoint_of, some_plan

CASES = [case for case in all_cases() if case.task == "classification" and case.family != "albert"]


@pytest.mark.parametrize("case", CASES, ids=str)
@given(seed=st.integers(0, 1000), dropped=st.sets(st.integers(1, 3), max_size=2))
@settings(deadline=None, max_examples=2)
def test_what_is_cut_from_the_whole_model_again_is_the_compact_one(case: Case, seed: int, dropped: set[int]) -> None:
    checkpoint, plan = checkpoint_of(case), some_plan(seed).dropping(sorted(dropped))
    small = compact(checkpoint.model, checkpoint.architecture, plan)
    with torch.no_grad():
        for weight in small.parameters():
            weight.mul_(1.5)
    before = {name: weight.clone() for name, weight in checkpoint.model.state_dict().items()}
    whole = put_back(checkpoint.model, checkpoint.architecture, plan, small)
    again = compact(whole, checkpoint.architecture, plan).state_dict()
    assert all(torch.equal(again[name], weight) for name, weight in small.state_dict().items())
    assert all(torch.equal(before[name], weight) for name, weight in checkpoint.model.state_dict().items())
