"""Laws of every method: its trace can be cut anywhere and resumed, its plan is a function of its trace, and it is a pass."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axformer.config import METHODS, RunConfig, config_of, make_config
from axformer.data.reading import rows_of
from axformer.errors import PlanError
from axformer.intake.checkpoint import from_memory
from axformer.intake.dataset import prepare
from axformer.methods.base import made_by, plan_of
from axformer.methods.progress import meter_of
from axformer.opening import Inputs
from axformer.plan.trial import Trial, Verdict
from axformer.run import PruningRun
from tests.runs import progress_of
from tests.tiny_models import tiny_model, tiny_rows, tiny_tokenizer

CHECKPOINT = from_memory(tiny_model(), tiny_tokenizer())
ROWS = rows_of(tiny_rows(30, pairs=True))
KNOBS: Mapping[str, Sequence[dict[str, Any]]] = {
    "axformer": (
        {"majority_fraction": 0.2, "attention_top_k": 3},
        {"tolerance": 0.1, "target_speedup": 1.3},
        {"repair": "refit", "neuron_group_size": 9, "majority_fraction": 0.2, "attention_top_k": 3},
        {"order": "importance", "neuron_groups": "ranked", "neuron_group_size": 9, "tolerance": 0.1},
        {"repair": "refit", "tolerance": 0.2, "neuron_group_size": 9, "inspect_layers_first": True},
    ),
    "compress": (
        {"budgets": (0.8, 0.5, 0.3), "confirm": 0.0, "within_points": None},
        {"budgets": (0.9, 0.6), "repair": "none", "target_size": 0.9, "confirm": 0.0, "within_points": None},
        {"budgets": (0.7, 0.4), "polish": 1, "confirm": 0.0, "within_points": None},
        {"budgets": (0.9, 0.7, 0.5), "cost": "latency", "confirm": 0.0, "within_points": None},
    ),
    "layers": (
        {"confirm": 0.0, "within_points": None},
        {"strategy": "greedy", "drop": 2},
        {"strategy": "contribution", "confirm": 0.3, "within_points": 40},
    ),
    "rank": (
        {"step": 0.25, "until": 0.75, "confirm": 0.0, "within_points": None},
        {"step": 0.3, "score": "l1", "units": "heads", "normalisation": "l1", "confirm": 0.0, "within_points": None},
        {"step": 0.4, "repair": "refit", "reestimate": False, "confirm": 0.0, "within_points": None},
        {"step": 0.2, "score": "random", "relative": 0.7, "confirm": 0.0, "within_points": None},
    ),
}
"""For every method some knobs with which it accepts something."""
configs = st.sampled_from(
    [config_of({"method": method, **knobs}, has_variant=True) for method, some in KNOBS.items() for knobs in some]
)


def run_of(config: RunConfig) -> PruningRun:
    return PruningRun(Inputs(CHECKPOINT, prepare(ROWS, CHECKPOINT, config)), config)


def timeless(trials: Sequence[Trial]) -> list[Trial]:
    return [trial.model_copy(update={"seconds": 0.0}) for trial in trials]


def test_every_method_is_here_and_its_description_names_its_code() -> None:
    assert KNOBS.keys() == METHODS.keys()
    for method in METHODS:
        config = make_config("paper", {"method": method})
        assert (config.method, type(config)) == (method, METHODS[method])
        assert made_by(type(config)).fits
        assert meter_of(CHECKPOINT.dimensions, config).longest > 1


@pytest.mark.slow
@given(configs, st.floats(0, 1))
@settings(deadline=None, max_examples=12)
def test_resumed_equals_undisturbed(config: RunConfig, share: float) -> None:
    undisturbed, resumed = run_of(config), run_of(config)
    whole = list(undisturbed.trials())
    measured_by_clock = whole[0].milliseconds is not None  # another run from its beginning measures other figures
    trials = list(resumed.trials(replay=whole[: max(measured_by_clock, round(share * len(whole)))]))
    assert timeless(trials) == timeless(whole)
    assert resumed.plan == undisturbed.plan


@given(configs)
@settings(deadline=None, max_examples=6)
def test_the_plan_is_a_function_of_the_trace(config: RunConfig) -> None:
    run = run_of(config)
    trials = list(run.trials())
    assert any(trial.verdict is Verdict.ACCEPT for trial in trials), "a run that accepts nothing proves little"
    assert run.plan == plan_of(run.trace, run.dimensions, config)


@given(configs)
@settings(deadline=None, max_examples=6)
def test_the_meter_ends_at_what_was_done(config: RunConfig) -> None:
    run = run_of(config)
    trials = list(run.trials())
    ended = progress_of(trials, run.dimensions, config, ended=True)
    assert (ended.done, ended.seconds_left) == (ended.known, 0)
    assert len(trials) <= meter_of(run.dimensions, config).longest


@pytest.mark.parametrize("method", METHODS)
def test_a_trace_of_another_run_is_refused(method: str) -> None:
    config = make_config("paper", {"method": method, **KNOBS[method][0]})
    stored = list(run_of(config).trials())[:3]
    stored[1] = stored[1].model_copy(update={"element": "layer.9.ffn", "plan": None})
    with pytest.raises(PlanError, match="is not one of this"):
        list(run_of(config).trials(replay=stored))
