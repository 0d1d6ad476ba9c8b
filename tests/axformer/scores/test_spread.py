"""Spreads of figures over several runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from axformer.scores.spread import spread_of

figures = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20)


@given(values=figures)
def test_the_interval_is_students(values: list[float]) -> None:
    spread = spread_of(values)
    assert spread.deviation is not None
    assert spread.interval is not None
    if spread.deviation > 0:  # else it is one number, which SciPy does not say
        wanted = t.interval(0.95, len(values) - 1, loc=spread.mean, scale=spread.deviation / len(values) ** 0.5)
        assert spread.interval == pytest.approx(wanted)
    assert spread.interval[0] <= spread.mean <= spread.interval[1]


@given(values=figures, shift=st.floats(-1e3, 1e3))
def test_a_shift_moves_mean_and_interval_alone(values: list[float], shift: float) -> None:
    before, after = spread_of(values), spread_of([value + shift for value in values])
    assert after.mean == pytest.approx(before.mean + shift, abs=1e-6)
    assert after.deviation == pytest.approx(before.deviation, abs=1e-6)


def test_one_run_has_no_spread() -> None:
    spread = spread_of([0.25])
    assert (spread.count, spread.mean, spread.deviation, spread.interval) == (1, 0.25, None, None)
