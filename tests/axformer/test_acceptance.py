import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.acceptance import accepted, verdict_of, worth_refining
from axformer.trial import Verdict

losses = st.floats(0, 100, allow_nan=False)


@pytest.mark.parametrize(
    ("loss", "helped", "expected"),
    [(0.9, 6, True), (0.9, 5, False), (1.0, 10, False), (1.1, 10, False), (float("nan"), 10, False)],
)
def test_both_halves_of_the_rule_must_hold(loss: float, helped: int, expected: bool) -> None:
    assert accepted(loss, 1.0, helped, 10, majority_fraction=0.5) is expected


@given(losses, losses, st.integers(0, 100), st.integers(0, 100), st.floats(0.01, 1))
def test_a_tighter_margin_accepts_no_more(loss: float, least: float, helped: int, more: int, margin: float) -> None:
    tight = accepted(loss, least, helped, helped + more, majority_fraction=0.5, loss_margin=margin)
    assert not tight or accepted(loss, least, helped, helped + more, majority_fraction=0.5)


@given(losses, losses)
def test_what_lowers_the_loss_is_worth_refining(loss: float, least: float) -> None:
    assert not loss < least or worth_refining(loss, least, refine_margin=1.1)


def test_acceptance_goes_before_refinement() -> None:
    assert verdict_of(is_accepted=True, is_refined=True) is Verdict.ACCEPT
    assert verdict_of(is_accepted=False, is_refined=True) is Verdict.REFINE
    assert verdict_of(is_accepted=False, is_refined=False) is Verdict.REJECT
