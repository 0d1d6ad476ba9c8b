"""Laws of the way that a trial takes through the model."""

from hypothesis import given
from hypothesis import strategies as st

from axformer.evaluation.changes import route_of
from axformer.plan.elements import Dimensions
from axformer.plan.plan import Plan

BLOCKS = 12
PLAN = Plan.full(Dimensions(layers=BLOCKS // 2, heads=2, hidden_size=4, intermediate_size=8))
blocks = st.integers(0, BLOCKS)


@given(blocks, blocks, blocks)
def test_nothing_is_taken_from_what_is_kept_but_what_is_right_for_the_trial(first: int, now: int, then: int) -> None:
    route = route_of(PLAN, PLAN, first, (now, then), None)
    assert route.known <= first, "behind the first change nothing is right"
    assert route.known <= now or route.tail < route.known, "behind the old tail one position is kept"


@given(blocks, blocks, blocks)
def test_no_block_that_mixes_positions_is_run_at_one(first: int, now: int, then: int) -> None:
    assert route_of(PLAN, PLAN, first, (now, then), None).tail >= then


@given(blocks, blocks)
def test_with_the_same_tail_a_trial_begins_at_its_change(first: int, tail: int) -> None:
    route = route_of(PLAN, PLAN, first, (tail, tail), None)
    assert (route.known, route.tail) == (first, tail)
