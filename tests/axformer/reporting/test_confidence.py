import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.scores.confidence import RESAMPLES, bootstrap, interval, mcnemar


def mean(table: np.ndarray) -> dict[str, float]:
    return {"mean": float(table[:, 0].mean())}


@given(st.floats(-1e6, 1e6), st.integers(1, 50))
def test_a_constant_is_sure(value: float, count: int) -> None:
    low, high = interval(bootstrap(np.full((count, 1), value), mean)["mean"])
    assert (low, high) == pytest.approx((value, value))


def test_the_interval_of_a_mean_is_that_of_the_normal_distribution() -> None:
    values = np.random.default_rng(1).normal(5.0, 2.0, size=(400, 1))
    drawn = bootstrap(values, mean)["mean"]
    error = 1.96 * values.std() / np.sqrt(400)
    assert drawn.shape == (RESAMPLES,)
    assert interval(drawn) == pytest.approx((values.mean() - error, values.mean() + error), abs=0.1 * error)


def test_it_is_seeded_and_paired() -> None:
    chance = np.random.default_rng(2)
    before = chance.normal(size=(50, 1))
    first, again, after = (bootstrap(table, mean)["mean"] for table in (before, before, before - 0.25))
    assert np.array_equal(first, again)
    assert interval(after - first) == pytest.approx((-0.25, -0.25)), "the same samples are drawn for both models"


def answers(wins: int, losses: int, ties: int = 5) -> tuple[np.ndarray, np.ndarray]:
    before = np.array([False] * wins + [True] * losses + [True] * ties)
    after = np.array([True] * wins + [False] * losses + [True] * ties)
    return before, after


@pytest.mark.parametrize(
    ("wins", "losses", "p_value"), [(0, 0, 1.0), (5, 5, 1.0), (8, 2, 0.109375), (10, 0, 2 / 2**10)]
)
def test_mcnemar_has_known_values(wins: int, losses: int, p_value: float) -> None:
    test = mcnemar(*answers(wins, losses))
    assert (test.gained, test.lost) == (wins, losses)
    assert test.p_value == pytest.approx(p_value)


@given(st.integers(0, 30), st.integers(0, 30))
def test_mcnemar_is_symmetric(wins: int, losses: int) -> None:
    before, after = answers(wins, losses)
    there, back = mcnemar(before, after), mcnemar(after, before)
    assert there.p_value == pytest.approx(back.p_value)
    assert (there.gained, there.lost) == (back.lost, back.gained)
