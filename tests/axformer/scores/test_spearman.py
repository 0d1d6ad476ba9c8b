"""The test of a fall of Spearman's correlation is asymptotic: near its level on hundreds of rows, and silent on few."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from axformer.scores.certificate import certify
from axformer.scores.paired_tests import ALPHA, FEWEST_ROWS, spearman_p_value
from axformer.scores.planning import fewest_rows
from axformer.scores.task_tests import paired_test
from axformer.tasks.embedding import SentenceEmbedding
from tests.axformer.test_embedding import checkpoint_of

BEFORE, MARGIN = 0.80, 0.02


def correlated(
    chance: np.random.Generator, rows: int, after: float, shared: float = 0.9
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers, and those of two models, whose Spearman correlations with them are ``BEFORE`` and ``after``; a share of the
    variance of the models' errors is common to both."""
    expected, common = chance.normal(size=(2, rows))
    found = []
    for spearman in (BEFORE, after):
        pearson = 2 * math.sin(math.pi * spearman / 6)  # of normal numbers
        error = math.sqrt(shared) * common + math.sqrt(1 - shared) * chance.normal(size=rows)
        found.append(pearson * expected + math.sqrt(1 - pearson**2) * error)
    return expected, found[0], found[1]


def certified(rows: int, after: float, sets: int, shared: float = 0.9) -> float:
    """The share of simulated data sets that certify the margin."""
    chance = np.random.default_rng(5)
    drawn = (correlated(chance, rows, after, shared) for _ in range(sets))
    return float(np.mean([spearman_p_value(*one, MARGIN) <= ALPHA for one in drawn]))


@pytest.mark.slow
@pytest.mark.parametrize("shared", [0.5, 0.9])
@pytest.mark.parametrize("rows", [300, 1_000])
def test_a_fall_of_just_the_margin_is_certified_in_about_one_data_set_of_twenty(rows: int, shared: float) -> None:
    assert certified(rows, BEFORE - MARGIN, 1_000, shared) <= 0.065


def test_a_model_that_lost_nothing_is_certified_and_one_that_lost_more_is_not() -> None:
    assert certified(1_000, BEFORE, 200) > 0.6
    assert certified(1_000, BEFORE - 2 * MARGIN, 200) == 0.0


@pytest.mark.parametrize("step", [0.001, 0.25, 1.0])
def test_the_variance_is_that_of_the_jackknife_also_with_ties(step: float) -> None:
    expected, before, after = (np.round(one / step) for one in correlated(np.random.default_rng(1), 200, 0.75))
    places = np.arange(len(expected))

    def fall(kept: np.ndarray) -> float:
        one, other = (spearmanr(expected[kept], found[kept]).statistic for found in (before, after))
        return float(one - other)

    left_out = np.array([fall(places != place) for place in places])
    deviation = math.sqrt((len(places) - 1) * left_out.var())
    for margin in (0.05, 0.1):
        score = (fall(places >= 0) - margin) / deviation
        p_value = 0.5 * math.erfc(-score / math.sqrt(2))
        assert spearman_p_value(expected, before, after, margin) == pytest.approx(p_value, rel=0.15, abs=1e-4)


@given(st.integers(0, 1_000), st.integers(FEWEST_ROWS, 90))
@settings(deadline=None, max_examples=30)
def test_ranks_alone_count_and_a_larger_margin_never_hurts(seed: int, rows: int) -> None:
    chance = np.random.default_rng(seed)
    expected, before, after = correlated(chance, rows, 0.7)
    p_value = spearman_p_value(expected, before, after, 0.1)
    order = chance.permutation(rows)
    stretched = spearman_p_value(np.exp(expected)[order], before[order] ** 3, 7 * after[order] - 2, 0.1)
    assert stretched == pytest.approx(p_value)
    assert spearman_p_value(expected, before, after, 0.12) <= p_value


def test_the_same_ranks_take_as_many_rows_as_answers_that_do_not_change() -> None:
    fewest = fewest_rows(MARGIN)
    assert fewest is not None
    expected, before, _ = correlated(np.random.default_rng(2), fewest, BEFORE)
    assert spearman_p_value(expected, before, before, MARGIN) <= ALPHA
    assert spearman_p_value(expected[1:], before[1:], before[1:], MARGIN) > ALPHA
    few = FEWEST_ROWS - 1
    assert spearman_p_value(expected[:few], before[:few], before[:few], 0.5) == 1.0


def test_a_model_without_numbers_or_with_one_alone_is_not_certified() -> None:
    expected, before, after = correlated(np.random.default_rng(3), 400, BEFORE)
    assert spearman_p_value(expected, before, np.zeros(400), 0.1) > ALPHA
    after[7] = np.nan
    assert spearman_p_value(expected, before, after, 0.1) == 1.0


def test_pairs_with_numbers_are_certified_asymptotically() -> None:
    task = SentenceEmbedding(checkpoint_of("bert").model.config, by_partners=True)
    expected, before, after = correlated(np.random.default_rng(4), 400, BEFORE)
    tables = [np.full((400, 10), np.nan) for _ in range(2)]
    for table, found in zip(tables, (before, after), strict=True):
        table[:, 5], table[:, 6] = expected, found
    kept, told = certify(tables, paired_test(tables[0], task, 5.0), 5.0, [0, 3], [2, 1])
    assert (kept, told.test, told.asymptotic, told.metric) == (1, "delta_method", True, "spearman")
    assert told.sentence.startswith("Certified (asymptotic): less than 5 points of spearman lost")
