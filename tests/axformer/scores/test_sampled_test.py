"""A rise of the squared error is certified by few labels, at its level, whatever the scale and however often one looks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axformer.scores.labelling import needed, p_value_of, standing_of
from axformer.scores.paired_tests import ALPHA
from axformer.scores.sampled_test import MOST_LABELS, Moves, _rises, draws_of, rise_p_value
from axformer.wire.answer_sheet import FAR, AnswerSheet, ChangedRow, PathAnswers

SCALE = 2.0
"""Variance of the untouched model's answers."""
WORLDS = {"normal": 0.05, "heavy": 0.1, "skewed": 0.05, "uneven": 0.08, "shifted": 0.05}
"""With the share of false certificates at the margin, above 5 % where moves have heavy tails (Student's t, three degrees)."""


def drawn(world: str, rows: int, rng: np.random.Generator, spread: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """How far answers moved, and the errors before."""
    deltas, errors = rng.normal(size=(2, rows))
    if world == "heavy":
        deltas, errors = rng.standard_t(3, size=(2, rows)) / 3**0.5
    elif world == "skewed":
        errors = rng.exponential(size=rows) - 1
    elif world == "uneven":
        hard = rng.exponential(size=rows)
        deltas, errors = deltas * hard / 2**0.5, errors * np.sqrt(0.3 + hard)
    elif world == "shifted":
        deltas = 0.7 * (1 + deltas)
    return spread * deltas, 0.6 * errors


def draws(rows: int, seed: object = 0) -> np.ndarray:
    return draws_of(f"{seed} {row}" for row in range(rows))


def labelled(
    deltas: np.ndarray, errors: np.ndarray, count: int | None = None, given: int = 0, seed: object = 0
) -> tuple[float, bool]:
    """The test by the labels that are asked for first; by all rows' if there is no count."""
    is_given, own = np.arange(len(deltas)) < given, draws(len(deltas), seed)
    known = np.where(is_given, errors, np.nan)
    moves = Moves(deltas, own, is_given, known)
    rows = np.arange(len(deltas)) if count is None else moves.order[:count]
    known[rows] = errors[rows]
    return rise_p_value(moves, 0.01, SCALE)


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(("rows", "given"), [(400, 0), (2000, 0), (1000, 60)])
def test_at_the_margin_about_one_data_set_of_twenty_is_certified(world: str, rows: int, given: int) -> None:
    rng, sets = np.random.default_rng(1), 400
    deltas, errors = drawn(world, 400_000, rng)
    lean = (0.01 * SCALE - (deltas**2).mean() - 2 * (deltas * errors).mean()) / (2 * (deltas**2).mean())
    false = 0
    for seed in range(sets):
        deltas, errors = drawn(world, rows, rng)
        false += labelled(deltas, errors + lean * deltas, MOST_LABELS, given, seed)[0] <= ALPHA
    assert false / sets <= WORLDS[world] + 2 * (0.05 * 0.95 / sets) ** 0.5


@pytest.mark.parametrize("world", WORLDS)
def test_a_model_whose_answers_hardly_move_is_certified_by_few_labels(world: str) -> None:
    rng = np.random.default_rng(2)
    passed = [labelled(*drawn(world, 1000, rng, 0.03), 120, seed=seed)[0] <= ALPHA for seed in range(30)]
    assert np.mean(passed) >= 0.8


@given(
    st.sampled_from(list(WORLDS)), st.integers(30, 2000), st.integers(0, 10_000), st.floats(-3, 6), st.integers(0, 50)
)
@settings(deadline=None, max_examples=40)
def test_labels_only_ever_lower_the_p_value_whatever_the_scale(
    world: str, rows: int, seed: int, power: float, given: int
) -> None:
    rng, factor = np.random.default_rng(seed), 10**power
    deltas, errors = drawn(world, rows, rng)
    is_given = np.arange(rows) < given
    known, last, own = np.where(is_given, errors, np.nan), 1.0, draws(rows, seed)
    asked = Moves(deltas, own, is_given, known).order
    for row in [None, *asked[:80].tolist()]:
        if row is not None:
            known[row] = errors[row]
        found, can_fall = rise_p_value(Moves(deltas, own, is_given, known), 0.02, SCALE)
        assert found <= last + 1e-12
        scaled = rise_p_value(Moves(factor * deltas, own, is_given, factor * known), 0.02, factor**2 * SCALE)
        assert scaled[0] == pytest.approx(found, rel=1e-6)
        assert not (can_fall and found <= ALPHA)
        last = found
    beyond = known.copy()
    beyond[asked[82:]] = errors[asked[82:]]
    assert rise_p_value(Moves(deltas, own, is_given, beyond), 0.02, SCALE)[0] == last, (
        "those out of the order count for nothing"
    )


def test_few_labels_estimate_what_all_labels_say_without_a_bias() -> None:
    rng = np.random.default_rng(3)
    deltas, errors = drawn("uneven", 300, rng)
    truth, found, none = float((deltas**2 + 2 * deltas * errors).mean()), [], np.zeros(300, dtype=bool)

    def estimated(own: np.ndarray, count: int) -> tuple[float, float]:
        rises, variances = _rises(Moves(deltas, own, none, errors), np.array([count]))
        return float(rises[0]), float(variances[0])

    for seed in range(600):
        found.append(estimated(draws(300, seed), 60))
    rises, variances = np.array(found).T
    assert rises.mean() == pytest.approx(truth, abs=4 * rises.std() / 600**0.5)
    # The rows themselves stay the same here, and their part of the variance is that of a mean over them.
    own = float((deltas**2 + 2 * deltas * errors).var()) / 300
    assert variances.mean() - own == pytest.approx(rises.var(), rel=0.2)
    assert estimated(draws(300), 300) == pytest.approx((truth, own))


def test_what_no_labels_can_change_asks_for_none() -> None:
    rng = np.random.default_rng(4)
    deltas, errors = drawn("normal", 1000, rng)
    assert labelled(np.zeros(1000), errors, 0) == (pytest.approx(0.99**1000), False), "nothing moved"
    assert labelled(np.zeros(100), errors[:100], 0) == (pytest.approx(0.99**100), False), "too few rows for that"
    assert labelled(deltas[:29], errors[:29]) == (1.0, False)
    assert labelled(np.full(1000, np.nan), errors, 0) == (1.0, False), "a model that diverged"
    assert labelled(FAR * np.sign(deltas), FAR * np.sign(errors)) == (1.0, False), "as far as answers may be"
    assert labelled(deltas, errors + 8 * deltas, 29)[1]
    assert labelled(deltas, errors + 8 * deltas, 60) == (pytest.approx(1.0, abs=0.3), False), "its error rises too far"


def test_a_path_of_numbers_is_labelled_to_its_end() -> None:
    rng = np.random.default_rng(5)
    before = rng.normal(3.0, SCALE**0.5, size=1000)
    truth = before - 0.6 * rng.normal(size=1000)
    moved = rng.normal(size=(3, 1000)) * np.array([[0.02], [0.04], [0.5]])
    rows = [
        ChangedRow(id=f"row{place}", place=place, inputs={"text": "x"}, before=value)
        for place, value in enumerate(before.tolist())
    ]
    models = [
        PathAnswers(seq=seq, form="compact", times=1.0 + seq, answers=dict(enumerate((before + delta).tolist())))
        for seq, delta in enumerate(moved, 1)
    ]
    sheet = AnswerSheet(
        task="regression",
        metric="explained variance",
        test="sampled",
        classes=[],
        points=1.0,
        rows=1000,
        unlabelled=1000,
        variance=float(before.var()),
        changed=rows,
        models=models,
    )
    assert AnswerSheet.model_validate_json(sheet.model_dump_json()) == sheet
    known: dict[str, float] = {}
    while asked := needed(sheet, known):
        known[asked[0].id] = float(truth[asked[0].place])
    standing = standing_of(sheet, "compact", known)
    assert (standing.passed, standing.is_futile) == (2, True)
    assert len(known) < MOST_LABELS
    assert p_value_of(sheet, models[2], known, 0.01) > ALPHA
