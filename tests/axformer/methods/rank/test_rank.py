"""Ranked pruning from its steps to its files."""

import json
from pathlib import Path

import pytest

from axformer.config import RankConfig, make_config
from axformer.errors import ConfigError
from axformer.methods.rank.method import RANKING
from axformer.plan.elements import parse
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial, Verdict
from tests.axformer.methods.test_any_method import CHECKPOINT, run_of

PLAIN = {"method": "rank", "confirm": 0.0, "within_points": None}


def trials_of(**knobs: object) -> list[Trial]:
    return list(run_of(make_config("paper", {**PLAIN, **knobs})).trials())


def units_left(trial: Trial) -> tuple[int, int]:
    assert trial.plan is not None
    return sum(len(layer.heads) for layer in trial.plan), sum(layer.neuron_count for layer in trial.plan)


def test_every_step_takes_the_same_share_of_heads_and_of_neurons() -> None:
    dimensions = CHECKPOINT.dimensions
    heads, neurons = dimensions.layers * dimensions.heads, dimensions.layers * dimensions.intermediate_size
    base, *steps = trials_of(step=0.25, until=1.0)
    assert [trial.element for trial in steps] == [f"encoder.less.{share:g}" for share in (0.25, 0.5, 0.75, 1)]
    assert [units_left(trial) for trial in steps] == [
        (heads - round(share * heads), neurons - round(share * neurons)) for share in (0.25, 0.5, 0.75, 1.0)
    ]
    assert base.plan is None


@pytest.mark.parametrize("units", ["heads", "neurons"])
def test_only_what_is_asked_for_leaves(units: str) -> None:
    last = trials_of(step=0.5, until=1.0, units=units)[-1]
    heads, neurons = units_left(last)
    assert (heads == 0, neurons == 0) == (units == "heads", units == "neurons")


def test_no_layer_loses_its_last_head_where_one_is_kept() -> None:
    last = trials_of(step=0.5, until=1.0, units="heads", keep_one_head=True)[-1]
    assert last.plan is not None
    assert [len(layer.heads) for layer in last.plan] == [1] * CHECKPOINT.dimensions.layers


def test_the_path_ends_at_the_last_step_with_enough_of_the_metric() -> None:
    run = run_of(make_config("paper", {**PLAIN, "step": 0.1, "score": "random", "relative": 0.8}))
    trials = list(run.trials())
    accepted = [trial for trial in trials if trial.verdict is Verdict.ACCEPT]
    assert 0 < len(accepted) < len(trials) - 1, "some steps fall below, and some do not"
    assert accepted[-1].plan is not None
    assert run.plan == Plan(layers=accepted[-1].plan)


def test_the_ranking_says_in_which_step_each_unit_left(tmp_path: Path) -> None:
    run = run_of(make_config("paper", {**PLAIN, "step": 0.3, "until": 0.6, "reestimate": False}))
    steps = list(run.trials())[1:]
    run.publish(tmp_path / "result")
    lines = [json.loads(line) for line in (tmp_path / "result" / RANKING).read_text().splitlines()]
    dimensions = CHECKPOINT.dimensions
    assert len(lines) == dimensions.layers * (dimensions.heads + dimensions.intermediate_size)
    for kind in (".head.", ".neurons."):
        of_kind = [line for line in lines if kind in line["element"]]
        assert [line["rank"] for line in of_kind] == list(range(len(of_kind)))
        assert [line["score"] for line in of_kind] == sorted(line["score"] for line in of_kind)
        left = [line["step"] for line in of_kind]
        assert left == sorted(left, key=lambda step: step or 99), "without another ranking, the lowest leave first"
    assert steps[0].plan is not None
    gone = [parse(line["element"]) for line in lines if line["step"] == 1]
    assert not any(Plan(layers=steps[0].plan).holds(element) for element in gone)


def test_steps_are_shares_that_end_where_they_should() -> None:
    assert RankConfig(step=0.25, until=0.6).shares == (0.25, 0.5, 0.6)
    assert RankConfig(step=0.05, until=0.95).shares[-1] == 0.95
    assert len(RankConfig(step=0.05, until=0.95).shares) == 19


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"step": 0.5, "until": 0.2}, "step=0.5 is above until=0.2"),
        ({"evaluate_in": "int8"}, "ranked pruning measures in float32"),
        ({"score": "taylr"}, "taylor"),
        ({"budgets": [0.5]}, "knob 'budgets' is of method=compress, not of method=rank"),
    ],
)
def test_wrong_knobs_are_named(knobs: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_config("paper", {**PLAIN, **knobs})


def test_a_share_that_removes_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="removes none of this model's 12 heads"):
        run_of(make_config("paper", {**PLAIN, "step": 0.01, "until": 0.03}))
