"""Milliseconds of blocks: one for each size, never more for a smaller block, and kept with the run that chose by them."""

import itertools

import pytest

from axformer.config import make_config
from axformer.errors import ConfigError
from axformer.methods.compress.latency import measure_blocks
from axformer.opening import Inputs
from axformer.plan.blocks import blocks_of_layer
from axformer.plan.levels import sizes_of
from axformer.plan.plan import Plan
from axformer.run import PruningRun
from tests.family_cases import Case, checkpoint_of, data_of
from tests.tiny_families import DIMENSIONS

FAMILIES = ("albert", "bert", "deberta-v2", "distilbert", "gpt2", "llama", "modernbert", "mpnet", "xlnet")
KNOBS = {
    "method": "compress",
    "cost": "latency",
    "budgets": [0.8, 0.6],
    "confirm": 0.0,
    "within_points": None,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_size_of_a_block_has_its_milliseconds(family: str) -> None:
    case = Case(family, "classification")
    found = measure_blocks(checkpoint_of(case), data_of(case).samples)
    for block, measured in zip(blocks_of_layer(0), (found.attention, found.ffn), strict=True):
        assert len(measured) == len(sizes_of(block, DIMENSIONS))
        assert measured[0] > 0
        assert all(0 <= after <= before for before, after in itertools.pairwise(measured))


def test_budgets_are_shares_of_the_milliseconds_that_the_base_trial_holds() -> None:
    case = Case("bert", "classification")
    config = make_config("paper", KNOBS)
    run = PruningRun(Inputs(checkpoint_of(case), data_of(case)), config)
    base, *budgets = run.trials()
    assert base.milliseconds is not None
    assert all(trial.milliseconds is None for trial in budgets)
    taken = [
        dict(zip(sizes_of(block, DIMENSIONS), measured, strict=True))
        for block, measured in zip(
            blocks_of_layer(0), (base.milliseconds.attention, base.milliseconds.ffn), strict=True
        )
    ]

    def cost(plan: Plan) -> float:
        return sum(taken[0][len(layer.heads)] + taken[1][layer.neuron_count] for layer in plan.layers)

    for trial in budgets:
        assert trial.plan is not None
        assert trial.element is not None
        share = float(trial.element.removeprefix("encoder."))
        assert cost(Plan(layers=trial.plan)) <= share * cost(Plan.full(DIMENSIONS)) * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1.1, 1.4])
def test_a_speed_that_is_asked_for_is_worked_out_from_milliseconds_and_ends_the_run(times: float) -> None:
    case = Case("bert", "classification")
    config = make_config("paper", {**KNOBS, "budgets": [0.99], "target_speedup": times})
    assert config.asks_for_time
    run = PruningRun(Inputs(checkpoint_of(case), data_of(case)), config)
    base, *budgets = run.trials()
    assert base.milliseconds is not None
    assert base.milliseconds.whole is not None
    attention, ffn = base.milliseconds.attention, base.milliseconds.ffn
    sizes = [
        dict(zip(sizes_of(block, DIMENSIONS), each, strict=True))
        for block, each in zip(blocks_of_layer(0), (attention, ffn), strict=True)
    ]
    saved = sum(
        attention[0] + ffn[0] - sizes[0][len(layer.heads)] - sizes[1][layer.neuron_count] for layer in run.plan.layers
    )
    whole = base.milliseconds.whole
    least = whole - sum(attention[0] + ffn[0] - attention[-1] - ffn[-1] for _ in run.plan.layers)
    assert saved >= 0
    if budgets and whole > 1.02 * times * least:
        assert whole >= times * (whole - saved) * 0.999, "it was reached"
    assert "is measured at the end" in str(run.closing_note)


def test_a_budget_that_no_plan_keeps_is_refused_before_the_table_is_measured() -> None:
    case = Case("bert", "classification")
    config = make_config("paper", {**KNOBS, "budgets": [0.5, 1e-9]})
    run = PruningRun(Inputs(checkpoint_of(case), data_of(case)), config)
    with pytest.raises(ConfigError, match=r"budgets: 1e-09 is less than this model can go to"):
        next(run.trials())
