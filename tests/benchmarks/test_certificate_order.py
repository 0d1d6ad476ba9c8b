"""The order of the tests of a certificate: what is simulated, and what is kept of it."""

import numpy as np
import pytest

from benchmarks.certificate_order import GAINED, LOST, SPEEDS, drawn, kept_speed, safest_first


def test_an_answer_that_changed_has_changed_in_the_smaller_models_too() -> None:
    gained, lost = drawn(np.random.default_rng(1), 5_000)
    assert (np.diff(gained) >= 0).all()
    assert (np.diff(lost) >= 0).all()
    assert lost / 5_000 == pytest.approx(np.array(LOST), abs=0.012)
    assert gained / 5_000 == pytest.approx(np.array(GAINED), abs=0.012)


def test_models_that_a_smaller_one_outdoes_are_not_tested() -> None:
    gained, lost = np.array([0, 5, 0]), np.array([1, 5, 9])
    assert safest_first((gained, lost), 200, 0.02) == [1, 2]


def test_the_fastest_before_the_first_failure_is_kept() -> None:
    gained, lost = np.zeros(8, int), np.array([0, 1, 60, 0, 0, 0, 0, 0])
    assert kept_speed(range(8), (gained, lost), 400, 0.02) == SPEEDS[1]
    assert kept_speed([3, 2, 7], (gained, lost), 400, 0.02) == SPEEDS[3]
    assert kept_speed([2, 7], (gained, lost), 400, 0.02) == 1.0
