"""Early exits keep what their test says, also on other rows, and run no more layers than the model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axformer.analysis.early import MAY_DIFFER, early_exits, exits_at

STATES, CLASSES = 6, 3


def drawn(seed: int, rows: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Scores of probes that know more the higher they are, the model's answers, and the right ones."""
    draw = np.random.default_rng(seed)
    expected = draw.integers(CLASSES, size=rows)
    clarity = draw.gamma(2.0, size=(rows, 1))
    told = [
        level * clarity * np.eye(CLASSES)[expected] + draw.normal(size=(rows, CLASSES)) for level in range(STATES + 1)
    ]
    return told[:-1], told[-1].argmax(axis=1), expected


@given(st.integers(0, 1000), st.integers(20, 5000))
@settings(deadline=None, max_examples=30)
def test_figures_are_those_of_answering_text_by_text(seed: int, rows: int) -> None:
    scores, own, expected = drawn(seed, rows)
    for found in early_exits(scores, own, expected):
        layers, changed, right = 0, 0, 0
        for row in range(rows):
            answer, depth = own[row], STATES
            for state in reversed(range(STATES)):
                odds = np.exp(scores[state][row] - scores[state][row].max())
                if odds.max() / odds.sum() >= found.threshold:
                    answer, depth = odds.argmax(), state
            layers, changed, right = layers + depth, changed + (answer != own[row]), right + (answer == expected[row])
        assert (found.rows, found.changed) == (rows, changed)
        assert (found.layers, found.right) == (pytest.approx(layers / rows), pytest.approx(right / rows))


def test_what_was_tested_holds_on_other_rows() -> None:
    everyone, own, _ = drawn(10**6, 200_000)
    sure = np.stack([np.exp(one) / np.exp(one).sum(axis=1, keepdims=True) for one in everyone]).max(axis=2)
    answers = np.stack([*(one.argmax(axis=1) for one in everyone), own])
    fell_short = dict.fromkeys(MAY_DIFFER, 0)
    trials = 200
    for seed in range(trials):
        for found in early_exits(*drawn(seed, 600)):
            exits = exits_at(found.threshold, sure)
            truth = (answers[exits, np.arange(len(own))] != own).mean()
            fell_short[found.may_differ] += truth > found.may_differ
    assert max(fell_short.values()) <= trials * 0.05 + 3 * (trials * 0.05 * 0.95) ** 0.5
    assert len(early_exits(*drawn(0, 600))) == len(MAY_DIFFER), "so it is of use"


def test_nothing_leaves_early_without_proof() -> None:
    scores, own, expected = drawn(0, 58)
    assert early_exits(scores, own, expected) == (), "58 rows never show that less than 5 % differ"
    wrong = [np.eye(CLASSES)[(own + 1) % CLASSES] * 50.0] * STATES
    assert early_exits(wrong, own, expected) == ()
