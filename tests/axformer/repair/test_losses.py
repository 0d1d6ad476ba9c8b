"""The curve of losses of a training."""

import math
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.repair.losses import curve_of


@given(
    st.integers(1, 7),
    st.integers(1, 30),
    st.integers(1, 4),
    st.data(),
)
def test_no_mean_is_of_fewer_steps_than_a_regular_one_and_none_is_lost(
    regular: int, steps_an_epoch: int, epochs: int, data: st.DataObject
) -> None:
    logged = sorted({*range(regular, steps_an_epoch * epochs + 1, regular), *_ends(steps_an_epoch, epochs)})
    losses = data.draw(st.lists(st.floats(0, 10), min_size=len(logged), max_size=len(logged)))
    history = [
        {"step": step, "epoch": step / steps_an_epoch, "loss": loss} for step, loss in zip(logged, losses, strict=True)
    ]

    points = curve_of(history)

    counts, widths = _widths(logged), _widths([point.step for point in points])
    assert min(widths) >= max(counts)
    assert points[-1].step == logged[-1]
    assert sum(width * (point.loss or 0.0) for width, point in zip(widths, points, strict=True)) == pytest.approx(
        sum(count * loss for count, loss in zip(counts, losses, strict=True)), abs=1e-6
    )


def test_losses_on_the_deciding_rows_stand_at_their_own_steps_and_those_that_are_not_finite_are_left_out() -> None:
    history = [
        {"step": 2, "epoch": 0.5, "loss": 1.0},
        {"step": 3, "epoch": 1.0, "loss": 4.0},
        {"step": 3, "epoch": 1.0, "eval_loss": 0.7},
        {"step": 4, "epoch": 1.5, "loss": math.nan},
        {"step": 6, "epoch": 2.0, "loss": 0.5},
        {"step": 6, "epoch": 2.0, "eval_loss": math.inf},
        {"step": 6, "epoch": 2.0, "train_runtime": 1.0},
    ]

    told = [(point.step, point.loss, point.deciding) for point in curve_of(history)]

    assert told == [(2, 1.0, None), (3, None, 0.7), (4, None, None), (6, 0.5, None)]


def _widths(ends: Sequence[int]) -> list[int]:
    return [after - before for before, after in pairwise((0, *ends))]


def _ends(steps_an_epoch: int, epochs: int) -> list[int]:
    return [steps_an_epoch * (done + 1) for done in range(epochs)]
