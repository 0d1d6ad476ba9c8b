"""Laws of the order in which units leave, and of the refit that it is greedy in."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from axformer.repair.least_squares import Fit, Sums, damping, error_of, refit, solved
from axformer.repair.leaving import RIDGE, leaving_order


def error_over(fit: Fit, sums: Sums) -> float:
    """The mean squared error of a fit over the tokens of sums."""
    return error_of(fit, sums.means, sums.covariances)


def block(seed: int, units: int, width: int, outputs: int = 5, tokens: int = 400) -> tuple[Tensor, Tensor, Tensor]:
    """Weights, bias, and inputs whose columns hang together."""
    chance = torch.Generator().manual_seed(seed)
    mixed = torch.randn(units * width, units * width, generator=chance, dtype=torch.float64)
    x = torch.randn(tokens, units * width, generator=chance, dtype=torch.float64) @ mixed + 1.0
    weight = torch.randn(outputs, units * width, generator=chance, dtype=torch.float64)
    return weight, torch.randn(outputs, generator=chance, dtype=torch.float64), x


def sums_of(x: Tensor, y: Tensor) -> Sums:
    sums = Sums.around(torch.ones(x.shape[1]), torch.zeros(y.shape[1]))
    for part in range(0, len(x), 64):
        sums.add(x[part : part + 64], y[part : part + 64])
    return sums


def columns_of(units: list[int], width: int) -> list[int]:
    return [unit * width + place for unit in units for place in range(width)]


@given(st.integers(0, 50), st.integers(2, 6), st.integers(1, 3), st.booleans())
@settings(deadline=None, max_examples=25)
def test_the_sum_of_the_scores_is_the_cost_of_the_error_of_the_refit(
    seed: int, units: int, width: int, has_metric: bool
) -> None:
    weight, _, x = block(seed, units, width)
    covariance = torch.cov(x.T, correction=0)
    root = torch.randn(len(weight), len(weight), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    even = torch.eye(len(weight), dtype=torch.float64)
    metric = root @ root.T + even if has_metric else None
    order = leaving_order(weight, covariance, units, step=0, metric=metric)
    second = covariance + damping(covariance, RIDGE) * torch.eye(len(covariance), dtype=torch.float64)
    for left in range(units):
        kept = columns_of(order.kept(left), width)
        fitted = torch.zeros_like(weight)
        if kept:
            fitted[:, kept] = torch.linalg.solve(second[kept][:, kept], (weight @ second)[:, kept].T).T
        difference = weight - fitted
        spread = difference @ second @ difference.T
        error = float((spread * (even if metric is None else metric)).sum())
        assert sum(order.scores[: units - left]) == pytest.approx(error, rel=1e-8)


@given(st.integers(0, 50), st.integers(2, 12), st.integers(1, 3), st.sampled_from([0, 0.1, 0.5]))
@settings(deadline=None, max_examples=25)
def test_every_unit_leaves_once(seed: int, units: int, width: int, step: float) -> None:
    weight, _, x = block(seed, units, width)
    order = leaving_order(weight, torch.cov(x.T, correction=0), units, step=step)
    assert sorted(order.units) == list(range(units))
    assert order.kept(units) == list(range(units))
    assert all(score >= 0 for score in order.scores)


def test_what_adds_nothing_leaves_first() -> None:
    weight, _, x = block(0, units=6, width=2)
    weight[:, columns_of([4], 2)] = 0
    x[:, columns_of([4], 2)] = torch.randn(len(x), 2, dtype=torch.float64)
    assert leaving_order(weight, torch.cov(x.T, correction=0), 6, step=0).units[0] == 4


@given(st.integers(0, 50), st.booleans())
@settings(deadline=None, max_examples=20)
def test_keeping_everything_changes_nothing(seed: int, has_bias: bool) -> None:
    weight, bias, x = block(seed, units=4, width=2)
    y = x @ weight.T + (bias if has_bias else 0)
    fit = refit(weight, sums_of(x[:300], y[:300]), sums_of(x[300:], y[300:]), has_bias=has_bias)
    assert torch.dist(fit.weight, weight) <= 1e-8 * weight.norm()
    assert fit.bias is None if not has_bias else torch.allclose(fit.bias, bias, atol=1e-6)


@given(st.integers(0, 50), st.booleans(), st.integers(0, 7))
@settings(deadline=None, max_examples=30)
def test_a_refit_is_near_least_squares_and_no_worse_than_the_bias_alone(seed: int, has_bias: bool, kept: int) -> None:
    weight, bias, x = block(seed, units=8, width=1)
    y = x @ weight.T + (bias if has_bias else 0)
    fitting, checking = sums_of(x[:300, :kept], y[:300]), sums_of(x[300:, :kept], y[300:])
    fit = refit(weight[:, :kept], fitting, checking, has_bias=has_bias)
    everything = fitting + checking
    alone = next(solved(weight[:, :kept], everything, [None], has_bias=has_bias))
    assert error_over(fit, everything) <= error_over(alone, everything) * (1 + 1e-9)
    direct = (y - x[:, :kept] @ fit.weight.T - (fit.bias if fit.bias is not None else 0)).square().sum(dim=1).mean()
    assert error_over(fit, everything) == pytest.approx(float(direct), rel=1e-6)


def test_too_few_tokens_are_answered_with_a_strong_ridge_or_the_bias_alone() -> None:
    weight, bias, x = block(3, units=40, width=1, tokens=30)
    y = x @ weight.T + bias
    kept = list(range(20))
    fitting, checking = sums_of(x[:20, kept], y[:20]), sums_of(x[20:, kept], y[20:])
    chosen = refit(weight[:, kept], fitting, checking, has_bias=True).ridge
    errors = [error_over(fit, checking) for fit in solved(weight[:, kept], fitting, [chosen, None], has_bias=True)]
    assert errors[0] <= errors[1]
