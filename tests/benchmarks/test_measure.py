"""The metrics that the benchmarks report, against their textbook formulas."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.measure import class_metrics

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
