"""Laws of linear CKA."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.analysis.cka import cka, compare
from axformer.analysis.representations import Representations
from tests.axformer.analysis.states import random_states


def matrix(seed: int, rows: int = 40, columns: int = 5) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return draw.normal(size=(rows, columns)) @ draw.normal(size=(columns, columns)) + draw.normal(size=columns)


def of(x: np.ndarray, y: np.ndarray, parts: int = 1) -> float:
    return cka(lambda: np.array_split(x, parts), lambda: np.array_split(y, parts))


def in_one_go(x: np.ndarray, y: np.ndarray) -> float:
    """The definition, by matrices of rows by rows (Song et al., 2012, equation 5)."""
    return criterion(x, y) / np.sqrt(criterion(x, x) * criterion(y, y))


def criterion(x: np.ndarray, y: np.ndarray) -> float:
    n = len(x)
    one, other = (product - np.diag(np.diag(product)) for product in (x @ x.T, y @ y.T))
    apart = one.sum() * other.sum() / (n - 1) / (n - 2)
    return float(np.trace(one @ other) + apart - 2 / (n - 2) * (one @ other).sum()) / n / (n - 3)


@given(st.integers(0, 10_000), st.floats(0.01, 100), st.integers(1, 7))
def test_it_ignores_rotations_and_scales_and_is_symmetric(seed: int, scale: float, parts: int) -> None:
    x, y = matrix(seed), matrix(seed + 1, columns=7)
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(5, 5)))[0]
    value = of(x, y, parts)
    assert 0 <= value <= 1
    assert value == pytest.approx(min(1.0, max(0.0, in_one_go(x, y))), abs=1e-9)
    assert of(x @ rotation, y) == pytest.approx(value)
    assert of(scale * x, y) == pytest.approx(value)
    assert of(y, x) == pytest.approx(value)
    assert of(x, scale * x @ rotation + 3) == pytest.approx(1)


def test_a_constant_says_nothing() -> None:
    assert of(np.ones((9, 3)), matrix(0, rows=9)) == 0
    assert of(np.ones((9, 3)), np.ones((9, 3))) == 0


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_fewer_than_four_rows_tell_nothing(rows: int) -> None:
    assert of(matrix(0, rows), matrix(1, rows)) == 0


@pytest.mark.parametrize(("rows", "columns"), [(200, 768), (500, 768), (500, 384), (2000, 64)])
def test_what_is_independent_is_not_alike_however_few_rows_there_are(rows: int, columns: int) -> None:
    draw = np.random.default_rng(rows + columns)
    found = [of(*draw.normal(size=(2, rows, columns))) for _ in range(5)]
    assert max(found) < 0.05


def test_few_rows_tell_the_same_as_many() -> None:
    draw = np.random.default_rng(0)
    shared = draw.normal(size=(8000, 300))
    x, y = (shared + draw.normal(size=shared.shape) for _ in range(2))
    assert of(x[:250], y[:250]) == pytest.approx(of(x, y), abs=0.06)


@pytest.mark.parametrize("positions", [90, 2100])
def test_the_matrix_streams_what_it_would_be_in_one_go(positions: int) -> None:
    states = random_states(positions=positions)
    whole = [states.state(layer).astype(float) for layer in range(states.layers + 1)]
    found = compare(states, most=positions, seed=0)
    assert found.alignment == pytest.approx(
        np.array([[in_one_go(x, y) for y in whole] for x in whole]).clip(0, 1), abs=1e-6
    )
    spread = [np.linalg.svd(x - x.mean(axis=0), compute_uv=False) ** 2 for x in whole]
    assert found.leading == pytest.approx([one[0] / one.sum() for one in spread])


def test_some_positions_stand_for_all_also_where_the_first_are_of_one_kind() -> None:
    states = random_states(positions=3000)
    other = Representations(random_states(seed=1, positions=3000, noise=4.0).states, (1,) * 3000)
    mixed = Representations(np.concatenate([states.states, other.states], axis=1), (1,) * 6000)
    whole, some = (compare(mixed, most=most, seed=0).alignment for most in (6000, 3000))
    assert some == pytest.approx(whole, abs=0.05)
    assert not np.allclose(compare(states, most=3000, seed=0).alignment, whole, atol=0.05)
    assert np.array_equal(some, compare(mixed, most=3000, seed=0).alignment)
