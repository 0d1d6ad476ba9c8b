"""Laws of the choice of the next units to leave."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from axformer.plan.blocks import Block, BlockKind
from axformer.scores.ranking import Scores, Unit, leaving_next, normalised

blocks = st.lists(st.lists(st.floats(0, 10, allow_nan=False), min_size=1, max_size=6), min_size=1, max_size=4).map(
    lambda rows: {Block.at(number): np.array(row) for number, row in enumerate(rows)}
)


def units_in(scores: Scores) -> set[Unit]:
    return {(block, unit) for block, values in scores.items() for unit in range(len(values))}


@given(scores=blocks, count=st.integers(0, 30))
def test_no_unit_that_leaves_has_a_higher_score_than_one_that_stays(scores: Scores, count: int) -> None:
    left = units_in(scores)
    leaving = leaving_next(scores, left, count)
    assert len(leaving) == len(set(leaving)) == min(count, len(left))
    stay = left - set(leaving)
    if leaving and stay:
        score = {unit: scores[unit[0]][unit[1]] for unit in left}
        assert max(score[unit] for unit in leaving) <= min(score[unit] for unit in stay)


@given(scores=blocks, first=st.integers(0, 10), second=st.integers(0, 10))
def test_two_steps_by_one_ranking_are_one_step(scores: Scores, first: int, second: int) -> None:
    left = units_in(scores)
    one = leaving_next(scores, left, first)
    two = leaving_next(scores, left - set(one), second)
    assert one + two == leaving_next(scores, left, first + second)


@given(scores=blocks, count=st.integers(0, 30))
def test_the_last_unit_of_a_block_can_be_kept(scores: Scores, count: int) -> None:
    left = units_in(scores)
    stay = left - set(leaving_next(scores, left, count, keeps_one=True))
    assert {block for block, _ in stay} == {block for block, _ in left}


@given(row=st.lists(st.floats(0, 10), min_size=1, max_size=6), layers=st.integers(1, 4), count=st.integers(0, 30))
def test_tied_units_leave_together_and_never_more_than_asked(row: list[float], layers: int, count: int) -> None:
    scores = {Block(layer, BlockKind.ATTENTION): np.array(row) for layer in range(layers)}
    left = {(block, unit) for block in scores for unit in range(len(row))}
    leaving = leaving_next(scores, left, count, owners=dict.fromkeys(scores, Block.at(0)))
    assert len(leaving) <= count
    for _, unit in leaving:
        assert all((block, unit) in leaving for block in scores)
    assert len(leaving) == min(count // layers, len(row)) * layers


@given(scores=blocks)
def test_normalised_scores_of_a_block_sum_to_one_and_keep_their_order(scores: Scores) -> None:
    by_sum, by_root = normalised(scores, "l1"), normalised(scores, "l2")
    for block, values in scores.items():
        is_zero = not values.any()
        assert np.isclose(by_sum[block].sum(), 0.0 if is_zero else 1.0)
        assert np.isclose(np.square(by_root[block]).sum(), 0.0 if np.square(values).sum() == 0 else 1.0)
    assert all((normalised(scores, "none")[block] == values).all() for block, values in scores.items())
