import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom

from axformer.scores.confidence import RESAMPLES, bootstrap, fell_no_further, fewest_samples, interval, mcnemar


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


def chance_of_passing(samples: int, limit: float, gain: float, fall: float) -> float:
    """The exact share of data sets that pass the score test where this share is gained and the share that is right falls so."""
    lost_share, most = fall + gain, 60
    return sum(
        float(binom.pmf(gained, samples, gain) * binom.pmf(lost, samples - gained, lost_share / (1 - gain)))
        for gained in range(most)
        for lost in range(most)
        if gained + lost <= samples and fell_no_further(gained, lost, samples, limit)
    )


@pytest.mark.parametrize("samples", [50, 95, 150, 300])
@pytest.mark.parametrize("points", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("gain", [0.0, 0.01, 0.02])
def test_a_fall_of_just_the_limit_passes_in_one_data_set_of_twenty(samples: int, points: int, gain: float) -> None:
    limit = points / 100
    at_the_limit = chance_of_passing(samples, limit, gain, fall=limit)
    assert at_the_limit <= 0.065
    assert chance_of_passing(samples, limit, gain, fall=1.5 * limit) <= at_the_limit


@given(st.integers(1, 2_000), st.floats(0.0, 1.0))
@example(133, 0.02)
@example(132, 0.02)
def test_no_change_shows_a_limit_where_the_samples_suffice_and_never_else(samples: int, limit: float) -> None:
    fewest = fewest_samples(limit)
    assert fell_no_further(0, 0, samples, limit) == (fewest is not None and samples >= fewest)


@pytest.mark.parametrize(("limit", "fewest"), [(0.0, None), (0.01, 268), (0.02, 133), (0.05, 52), (1.0, 1)])
def test_so_many_samples_show_a_limit(limit: float, fewest: int | None) -> None:
    assert fewest_samples(limit) == fewest


@given(st.integers(0, 40), st.integers(0, 40), st.integers(80, 500), st.floats(0.0, 0.5), st.floats(0.0, 0.5))
def test_a_larger_limit_a_lost_answer_less_or_one_gained_more_never_fails_what_passed(
    gained: int, lost: int, samples: int, limit: float, more: float
) -> None:
    if fell_no_further(gained, lost, samples, limit):
        assert (lost - gained) / samples < limit
        assert fell_no_further(gained, lost, samples, limit + more)
        assert lost == 0 or fell_no_further(gained, lost - 1, samples, limit)
        assert fell_no_further(gained + 1, lost, samples, limit)
