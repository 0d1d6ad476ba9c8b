"""The metrics that the benchmarks report, against their textbook formulas."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.metrics import answer_scores, class_metrics, f1

PAIRS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60)


@given(PAIRS)
def test_matthews_of_two_classes_is_the_textbook_formula(pairs):
    predicted, truth = (np.array(column) for column in zip(*pairs, strict=True))
    tp, tn = int((predicted & truth).sum()), int(((1 - predicted) & (1 - truth)).sum())
    fp, fn = int((predicted & (1 - truth)).sum()), int(((1 - predicted) & truth).sum())
    spread = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    expected = (tp * tn - fp * fn) / spread if spread else 0.0
    assert class_metrics(predicted, truth)["matthews"] == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60))
def test_perfect_predictions_are_perfect(truth):
    found = class_metrics(np.array(truth), np.array(truth))
    assert found["accuracy"] == 1
    assert found["matthews"] == pytest.approx(1 if len(set(truth)) > 1 else 0)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_f1_is_the_harmonic_mean_of_precision_and_recall(right, wrong, missed):
    found, true = right + wrong, right + missed
    precision, recall = right / max(found, 1), right / max(true, 1)
    expected = 2 * precision * recall / (precision + recall) if right else 0.0
    assert f1(right, found, true) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answer", "exact", "overlap"),
    [
        ("The Denver Broncos!", 1.0, 1.0),  # article, case and punctuation do not count
        ("Broncos", 0.0, 2 / 3),
        ("Carolina Panthers", 0.0, 0.0),
        ("the broncos of Denver", 0.0, 0.8),
        ("", 0.0, 0.0),
    ],
)
def test_an_answer_is_scored_as_squad_does(answer, exact, overlap):
    assert answer_scores(answer, ["Denver Broncos", "the Santa Clara team"]) == (exact, pytest.approx(overlap))
