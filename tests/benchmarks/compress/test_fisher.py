"""The published method does what its formulas say."""

from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from axformer.plan.blocks import Block
from axformer.plan.plan import Plan
from axformer.repair.least_squares import Sums
from axformer.repair.refit import matrix_of, refit_plan
from benchmarks.compress.fisher import Costs, lost_information, most_informative, rearranged
from benchmarks.compress.scalars import LIMIT, Tuning, best_scalars
from tests.family_cases import Case, checkpoint_of, data_of, some_plan

CASE = Case("bert", "classification")
HEADS, NEURONS = 2, 4


def information_of(seed: int, units: int) -> Tensor:
    slopes = torch.randn(9, units, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return slopes.T @ slopes


def sums_of(x: Tensor, y: Tensor) -> Sums:
    sums = Sums.around(torch.zeros(x.shape[1]), torch.zeros(y.shape[1]))
    sums.add(x, y)
    return sums


@given(st.integers(0, 10**6), st.floats(0.5, 40), st.floats(0.5, 6), st.floats(0.5, 3))
@settings(deadline=None, max_examples=40)
def test_the_masks_keep_the_most_information_within_the_budget(
    seed: int, budget: float, head: float, neuron: float
) -> None:
    sizes = (HEADS, NEURONS, HEADS, NEURONS)
    found = [information_of(seed + block, units) for block, units in enumerate(sizes)]
    kept = most_informative(found, Costs(head, neuron), budget)
    units = [(block, unit) for block, size in enumerate(sizes) for unit in range(size)]

    def total(chosen: tuple[tuple[int, int], ...]) -> tuple[float, float]:
        cost = sum(neuron if block % 2 else head for block, _ in chosen)
        return cost, sum(float(found[block][unit, unit]) for block, unit in chosen)

    cost, most = total(tuple((block, unit) for block, some in enumerate(kept) for unit in some))
    subsets = (total(some) for count in range(len(units) + 1) for some in combinations(units, count))
    assert cost <= budget + 1e-9
    assert most == pytest.approx(max(value for cost, value in subsets if cost <= budget))


@given(st.integers(0, 10**6), st.integers(0, 8))
@settings(deadline=None)
def test_rearranging_keeps_as_many_and_never_loses_more(seed: int, count: int) -> None:
    information = information_of(seed, 8)
    before = information.diagonal().argsort(descending=True)[:count].tolist()
    after = rearranged(information, before)
    assert len(set(after)) == count
    assert lost_information(information, after) <= lost_information(information, before) + 1e-9


@pytest.mark.parametrize("width", [1, 3])
def test_scalars_are_found_again(width: int) -> None:
    chance = torch.Generator().manual_seed(1)
    x, weight = (torch.randn(*shape, generator=chance, dtype=torch.float64) for shape in ((500, 6), (5, 6)))
    true = torch.linspace(0.5, 2.0, 6 // width, dtype=torch.float64)
    bias = torch.arange(5, dtype=torch.float64)
    y = (x + 1) * true.repeat_interleave(width) @ weight.T + bias
    found = best_scalars(weight, bias, sums_of(x + 1, y), width, damping=1e-6)
    torch.testing.assert_close(found, true)
    same = best_scalars(weight, bias, sums_of(x + 1, (x + 1) @ weight.T + bias), width)
    torch.testing.assert_close(same, torch.ones_like(same))
    bound = best_scalars(weight, bias, sums_of(x + 1, y), width, damping=1e6)
    torch.testing.assert_close(bound, torch.ones_like(bound), atol=1e-3, rtol=0)


def test_tuning_changes_weights_by_one_scalar_a_unit_and_leaves_biases() -> None:
    checkpoint, samples, plan = checkpoint_of(CASE), data_of(CASE).samples, some_plan(3)
    fits = refit_plan(checkpoint.model, checkpoint.architecture, samples, plan, solver_of=Tuning(checkpoint))
    assert fits
    layers = checkpoint.architecture.layers(checkpoint.model)
    for block, fit in fits.items():
        whole = checkpoint.architecture.layout(block).weights(layers[block.layer])
        units = block.units(plan)
        assert whole.bias is not None
        assert torch.equal(fit.bias, whole.bias)
        if fit.weight is not None:
            width = fit.weight.shape[1] // len(units)
            old = matrix_of(whole).unflatten(1, (-1, width))[:, list(units)]
            scalars = fit.weight.unflatten(1, (-1, width)) / old
            torch.testing.assert_close(scalars, scalars[:1, :, :1].expand_as(scalars), rtol=1e-4, atol=1e-4)


def test_scalars_that_leave_the_limit_end_the_tuning() -> None:
    checkpoint, chance = checkpoint_of(CASE), torch.Generator().manual_seed(1)
    tuning, units = Tuning(checkpoint), checkpoint.dimensions.intermediate_size
    x, weight = torch.randn(900, units, generator=chance), torch.randn(32, units, generator=chance)
    near, far = (sums_of(x, factor * x @ weight.T) for factor in (2.0, 2 * LIMIT))
    none = sums_of(x[:0], x[:0] @ weight.T)
    before = tuning(Block.at(1))(weight, near, none, has_bias=True).weight
    torch.testing.assert_close(before, 2 * weight.double(), rtol=0.05, atol=0.5)
    assert tuning.ended_at is None
    assert torch.equal(tuning(Block.at(3))(weight, far, none, has_bias=True).weight, weight.double())
    assert tuning.ended_at == Block.at(3)
    assert torch.equal(tuning(Block.at(5))(weight, near, none, has_bias=True).weight, weight.double())


def test_the_whole_plan_needs_no_tuning() -> None:
    checkpoint = checkpoint_of(CASE)
    full = Plan.full(checkpoint.dimensions)
    samples = data_of(CASE).samples
    assert refit_plan(checkpoint.model, checkpoint.architecture, samples, full, solver_of=Tuning(checkpoint)) == {}
