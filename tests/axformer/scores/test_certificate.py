"""Certificates are false in at most one data set of twenty, and the cheapest model that has one is kept."""

import itertools
import math
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bootstrap

from axformer.scores.certificate import before_training, certify, in_sequence
from axformer.scores.paired_tests import (
    ALPHA,
    FEWEST_ROWS,
    betting_p_value,
    betting_p_values,
    bootstrap_test,
    exact_p_value,
    score,
)
from axformer.scores.planning import (
    POWER,
    USUAL_RATE,
    few_rows_told,
    fewest_rows,
    power_of,
    rows_needed,
    smallest_margin,
)
from axformer.scores.task_tests import POINT, paired_test, too_few_rows
from axformer.tasks.base import Task
from axformer.tasks.classification import Classification
from axformer.tasks.regression import Regression
from axformer.tasks.token_classification import TokenClassification
from axformer.wire.verdicts import Certificate
from benchmarks.certificate import chance_of, exact_region


def certified(
    tables: Sequence[np.ndarray],
    task: Task,
    points: float,
    seqs: Sequence[int],
    costs: Sequence[float],
    doubt: str | None = None,
) -> tuple[int, Certificate]:
    """The certificate of a path, by the test of its task."""
    return certify(tables, paired_test(tables[0], task, points), points, seqs, costs, doubt)


MARGINS = st.sampled_from([0.005, 0.01, 0.02, 0.05, 0.1, 0.3])


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "margin"), [(12, 0.3), (25, 0.1), (40, 0.1), (60, 0.05), (80, 0.05), (150, 0.02)])
def test_a_fall_of_just_the_margin_is_certified_in_one_data_set_of_twenty(rows: int, margin: float) -> None:
    region = exact_region(rows, margin, rows)
    for gain in (0.0, *np.geomspace(0.002, (1 - margin) / 2, 50)):
        at_the_margin = chance_of(region, rows, gain, gain + margin)
        assert at_the_margin <= ALPHA
        assert chance_of(region, rows, gain, gain + 1.1 * margin) <= at_the_margin


@given(st.integers(0, 30), st.integers(0, 30), st.integers(61, 600), MARGINS)
@settings(deadline=None, max_examples=40)
def test_an_answer_more_that_is_lost_never_helps_and_a_larger_margin_never_hurts(
    gained: int, lost: int, rows: int, margin: float
) -> None:
    p_value = exact_p_value(gained, lost, rows, margin)
    assert exact_p_value(gained, lost + 1, rows, margin) >= p_value
    assert exact_p_value(gained, lost, rows, 1.2 * margin) <= p_value + 0.002
    lost_shares = np.array([lost, lost + 1, lost])
    scores = score(np.array([gained, gained, gained + 1]), lost_shares, rows, margin)
    assert scores[1] <= scores[0] <= scores[2]


@given(st.integers(0, 30), st.integers(0, 30), st.integers(61, 600), MARGINS)
@settings(deadline=None, max_examples=60)
def test_what_is_certified_is_within_the_margin_on_these_rows(gained: int, lost: int, rows: int, margin: float) -> None:
    """By as much as chance may be: by two thirds of a standard deviation of the changed answers at least."""
    if exact_p_value(gained, lost, rows, margin) <= ALPHA:
        fall = (lost - gained) / rows
        assert fall + 0.66 * math.sqrt(max(lost + gained - rows * fall**2, 0.0)) / rows < margin


@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=3, max_size=80), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=30)
def test_neither_the_order_of_rows_nor_which_of_them_agree_matters(changes: list[int], chance: object) -> None:
    """Only how many answers changed, and how many rows there are."""
    shuffled = list(changes)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second, third = (_chosen(one, flip) for one, flip in ((changes, False), (shuffled, False), (changes, True)))
    assert first == second == third


def _chosen(changes: Sequence[int], flip: bool) -> object:
    """The choice where rows that agree are both right, or both wrong."""
    before = np.array([change < 0 or (change == 0 and flip) for change in changes])
    after = np.array([change > 0 or (change == 0 and flip) for change in changes])
    return certified([_answers(before), _answers(after)], Classification(), 20.0, [0, 1], [2, 1])


def _answers(right: np.ndarray) -> np.ndarray:
    """Loss, label and answer of samples of which these are answered rightly."""
    labels = np.arange(len(right)) % 2
    return np.column_stack([np.zeros(len(right)), labels, np.where(right, labels, 1 - labels)])


@pytest.mark.parametrize(("margin", "fewest"), [(0.0, None), (0.01, 299), (0.02, 149), (0.05, 59), (1.0, 1)])
def test_so_many_rows_certify_where_nothing_changes(margin: float, fewest: int | None) -> None:
    assert fewest_rows(margin) == fewest
    if fewest is not None:
        assert exact_p_value(0, 0, fewest, margin) <= ALPHA
    if fewest is not None and fewest > 1:
        assert exact_p_value(0, 0, fewest - 1, margin) > ALPHA


@pytest.mark.parametrize("margin", [0.01, 0.05])
@pytest.mark.parametrize("gain", [0.0, 0.02])
def test_bets_are_lost_by_a_fall_of_just_the_margin_in_nineteen_of_twenty(margin: float, gain: float) -> None:
    chance = np.random.default_rng(3)
    drawn = chance.random((2_000, 400))
    sizes = chance.choice([0.25, 0.5, 1.0], drawn.shape)
    harm = gain + margin
    for sizes_of in (np.ones(drawn.shape), sizes):
        rates = harm / sizes_of.mean(), gain / sizes_of.mean()
        changes = np.where(drawn < rates[0], 1, np.where(drawn > 1 - rates[1], -1, 0)) * sizes_of
        false = (betting_p_values(changes, margin) <= ALPHA).mean()
        assert false <= ALPHA + 0.01
    better = np.where(drawn > 1 - gain, -1, 0)
    assert (betting_p_values(better, 0.05) <= ALPHA).mean() > 0.99, "and won by a model that loses nothing"


@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=100), MARGINS, st.floats(0.0, 1.0))
@settings(deadline=None)
def test_a_bet_is_a_p_value(changes: list[float], margin: float, more: float) -> None:
    differences = np.array(changes)
    p_value = betting_p_value(differences, margin)
    assert 0 <= p_value <= 1
    assert p_value == betting_p_value(differences, margin)
    assert betting_p_value(np.ones(len(changes)), margin) == 1
    assert betting_p_value(np.zeros(4000), 0.005) <= ALPHA
    assert betting_p_value(differences, 1.0) == 0 or more >= 0


def _correlated(rows: int, noise: float, seed: int) -> np.ndarray:
    """Loss, expected and predicted numbers."""
    expected, error = np.random.default_rng(0).normal(size=rows), np.random.default_rng(seed).normal(size=rows)
    return np.column_stack([error**2, expected, expected + noise * error])


def test_the_bootstrap_is_that_of_scipy() -> None:
    """Its p-value crosses 5 % where scipy's one-sided 95 % end does the margin."""
    before, after = _correlated(150, 0.5, 1), _correlated(150, 0.6, 2)

    def pearson(table: np.ndarray) -> float:
        return float(np.corrcoef(table[:, 1], table[:, 2])[0, 1])

    def fall(*columns: np.ndarray) -> float:
        expected, one, other = columns
        return float(np.corrcoef(expected, one)[0, 1] - np.corrcoef(expected, other)[0, 1])

    columns = (before[:, 1], before[:, 2], after[:, 2])
    known = bootstrap(
        columns, fall, paired=True, vectorized=False, n_resamples=4000, confidence_level=0.95,
        alternative="less", rng=np.random.default_rng(4),
    )  # fmt: skip
    end = known.confidence_interval.high
    p_values = [bootstrap_test(before, pearson, end + step)(after) for step in (-0.006, 0.0, 0.006)]
    assert p_values[0] > p_values[1] > p_values[2]
    assert p_values[0] > ALPHA > p_values[2]
    assert p_values[1] == pytest.approx(ALPHA, abs=0.015)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.lists(st.floats(0, 0.1), min_size=8, max_size=8))
def test_the_cheapest_of_those_before_the_first_failure_is_kept(costs: list[int], p_values: list[float]) -> None:
    order = list(range(len(costs)))
    asked: list[int] = []

    def p_value(place: int) -> float:
        asked.append(place)
        return p_values[place]

    tested = in_sequence(order, p_value)
    assert list(tested.indices) == asked == order[: len(asked)]
    assert tested.passed == len(list(itertools.takewhile(lambda place: p_values[place] <= ALPHA, order)))
    kept = tested.cheapest(costs)
    assert (kept is None) == (tested.passed == 0)
    assert kept is None or costs[kept] == min(costs[place] for place in order[: tested.passed])


@pytest.mark.parametrize("rows", [1, 2, 3, 10, FEWEST_ROWS - 1])
def test_the_bootstrap_certifies_nothing_on_few_rows(rows: int) -> None:
    """A single row, and any two of which one is drawn twice, have no correlation, so nothing would seem to be lost."""
    before = _correlated(rows, 0.5, 1)
    assert bootstrap_test(before, _pearson, 0.05)(before) == 1.0
    assert "that takes 30" in str(too_few_rows("regression", rows, 5.0))


@pytest.mark.slow
def test_a_model_without_numbers_is_not_certified() -> None:
    """As after a training that diverged."""
    before, after = _correlated(100, 0.5, 1), _correlated(100, 0.5, 1)
    assert bootstrap_test(before, _pearson, 0.05)(before) <= ALPHA
    after[7, 2] = np.nan
    assert bootstrap_test(before, _pearson, 0.05)(after) == 1.0
    kept, told = certified([before, after], Regression(), 5.0, [0, 1], [2, 1])
    assert (kept, told.passed) == (0, 0)


def _pearson(table: np.ndarray) -> float:
    return Regression().metrics(table[:, 1:])["pearson"]


def _path(*lost: int, rows: int = 400) -> list[np.ndarray]:
    """The untouched model, and models that lost so many of its answers."""
    return [_answers(np.arange(rows) >= count) for count in (0, *lost)]


def test_a_path_is_kept_up_to_the_first_that_may_have_lost_more() -> None:
    kept, told = certified(_path(0, 2, 9, 1), Classification(), 2.0, [0, 3, 5, 8, 9], [10, 9, 8, 7, 6])
    assert kept == 2
    assert (told.kept, told.passed, told.tested, told.order, told.test) == (5, 2, 3, "path", "exact")
    assert told.p_value == exact_p_value(0, 2, 400, 0.02)
    assert told.reason == f"the model of trial 8 may have lost more (p = {exact_p_value(0, 9, 400, 0.02):.2g})"
    assert told.sentence == ("Certified: less than 2 points of accuracy lost, 95 %, on 400 rows nobody decided with.")
    assert before_training(told).sentence.endswith("says nothing of the trained model.")


@pytest.mark.parametrize(
    ("lost", "reason"),
    [((), "nothing smaller was accepted"), ((20,), "trial 1 may"), ((20, 21), "the first of 2 that")],
)
def test_without_one_that_passes_the_untouched_model_is_kept(lost: tuple[int, ...], reason: str) -> None:
    places = list(range(len(lost) + 1))
    kept, told = certified(_path(*lost), Classification(), 1.0, places, [-place for place in places])
    assert kept == told.kept == 0
    assert told.p_value is None
    assert told.reason is not None
    assert reason in told.reason
    assert told.sentence == f"Not certified: the untouched model is kept, for {told.reason}."


def test_taggers_are_tested_by_sentences_and_correlations_asymptotically() -> None:
    words = np.full(600, 8.0)
    before, after = np.full(600, 7.0), np.where(np.arange(600) % 60 == 0, 6.0, 7.0)
    tables = [np.column_stack([np.zeros(600), right, words]) for right in (before, after)]
    kept, told = certified(tables, TokenClassification(("a", "b")), 2.0, [0, 1], [2, 1])
    assert (kept, told.test, told.asymptotic) == (1, "betting", False)
    assert told.p_value == betting_p_value((before - after) / words, 0.02)
    kept, told = certified([_correlated(300, 0.3, 1), _correlated(300, 0.3, 2)], Regression(), 5.0, [0, 1], [2, 1])
    assert (kept, told.test, told.asymptotic, told.metric) == (1, "bca_bootstrap", True, "pearson")
    assert told.sentence.startswith("Certified (asymptotic): less than 5 points of pearson lost")


@pytest.mark.parametrize(
    ("points", "rate", "needed"), [(1, 0.01, 1_354), (1, 0.02, 2_522), (2, 0.01, 401), (5, 0.02, 132)]
)
def test_rows_and_margins_belong_together(points: float, rate: float, needed: int) -> None:
    rows = rows_needed(points, rate, rate)
    assert rows == pytest.approx(needed, rel=0.01)
    assert rows is not None
    assert power_of(rows, points * POINT, rate, rate) >= 0.8
    assert smallest_margin(rows, rate, rate) == pytest.approx(points * POINT)
    normal = 6.18 * 2 * rate / (points * POINT) ** 2
    assert rows > normal, "what normal theory says is too few"


def test_no_number_of_rows_shows_what_is_not_so() -> None:
    assert rows_needed(1, 0.03, 0.01) is None
    assert rows_needed(0, 0.01, 0.01) is None
    assert smallest_margin(5, 1.0, 0.0) == 1


@pytest.mark.parametrize(
    ("rows", "points", "told"),
    [
        (100, 2.0, "(that takes 149), so the untouched model will be kept; give about 40"),
        (
            200,
            2.0,
            "certify it in less than 80% of cases where 1% of the answers are lost and as many gained; give about",
        ),
        (200, 0.0, "as no number can, so the untouched model will be kept; allow more points"),
        (450, 2.0, None),
        (3, 100.0, None),
    ],
)
def test_what_rows_cannot_carry_is_said(rows: int, points: float, told: str | None) -> None:
    note = too_few_rows("classification", rows, points)
    assert (note is None) == (told is None)
    assert told is None or told in str(note)
    assert (too_few_rows("token_classification", rows, points) is None) == (rows >= FEWEST_ROWS)
    assert (too_few_rows("regression", rows, points) is None) == (rows >= FEWEST_ROWS)


@pytest.mark.parametrize("rows", [3, 15, 20, 25, 40, 60, 150, 800])
def test_points_that_rows_are_said_to_certify_they_do(rows: int) -> None:
    offered = re.search(r"ask for ([\d.]+) points", str(few_rows_told(rows, 0.5)))
    assert offered is not None
    assert power_of(rows, float(offered[1]) * POINT, USUAL_RATE, USUAL_RATE) >= POWER
    assert few_rows_told(rows, float(offered[1])) is None
