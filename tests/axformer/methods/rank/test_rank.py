"""Ranked pruning from its steps to its files."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import axformer
from axformer.config import RankConfig, make_config
from axformer.config.rank import RANKING
from axformer.data.encoding import UNLABELLED
from axformer.errors import ConfigError
from axformer.intake.dataset import DataSet
from axformer.model.compact import compact
from axformer.opening import Inputs
from axformer.plan.elements import parse
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial, Verdict
from axformer.run import PruningRun
from axformer.scores.importance import SCORES, Ranked, ScoreUnits
from axformer.scores.measured import measure
from tests.axformer.methods.test_any_method import CHECKPOINT, run_of, timeless
from tests.family_cases import Case, checkpoint_of, data_of
from tests.tiny_models import tiny_model, tiny_rows, tiny_tokenizer

MASKED = Case("bert", "masked_lm")
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


def test_a_share_of_the_metric_needs_no_confirming_rows() -> None:
    config = make_config("paper", {"method": "rank", "relative": 0.9})
    assert (config.confirm, config.within_points) == (0.0, None)
    assert make_config("paper", {"method": "rank", "relative": 0.9, "confirm": 0.3}).confirm == 0.3


def guessed(case: Case) -> DataSet:
    """Data of a masked language model whose hidden tokens are those that it guesses first."""
    checkpoint, data = checkpoint_of(case), data_of(case)
    batches = []
    for batch in data.samples.batches:
        with torch.no_grad():
            first = checkpoint.model(**batch.inputs).logits.argmax(dim=-1)
        batches.append(replace(batch, labels=torch.where(batch.labels == UNLABELLED, batch.labels, first)))
    return replace(data, samples=replace(data.samples, batches=tuple(batches)))


@pytest.mark.parametrize("relative", [0.7, 0.9])
def test_language_models_are_judged_by_recall_at_1(relative: float) -> None:
    checkpoint, data = checkpoint_of(MASKED), guessed(MASKED)
    config = make_config("paper", {"method": "rank", "relative": relative, "units": "neurons", "step": 0.1})
    base, *steps = PruningRun(Inputs(checkpoint, data), config).trials()
    assert base.verdict is Verdict.BASE

    def recall(plan: Plan) -> float:
        small = compact(checkpoint.model, checkpoint.architecture, plan)
        return measure(small, checkpoint.task, data.samples).figures["accuracy"]

    assert recall(Plan.full(checkpoint.dimensions)) == 1.0
    for trial in steps:
        assert trial.plan is not None
        assert (trial.verdict is Verdict.ACCEPT) == (recall(Plan(layers=trial.plan)) >= relative)
    assert {trial.verdict for trial in steps} == {Verdict.ACCEPT, Verdict.REJECT}


def test_a_language_model_has_no_points() -> None:
    config = make_config("paper", {"method": "rank"})
    with pytest.raises(ConfigError, match=r"use relative=0\.9, which goes by Recall@1"):
        PruningRun(Inputs(checkpoint_of(MASKED), data_of(MASKED)), config)


@pytest.mark.parametrize("name", ["taylor", "l1"])
def test_a_function_that_scores_as_a_built_in_score_gives_the_same_decisions(name: str) -> None:
    wanted = trials_of(step=0.3, score=name)
    run = run_of(make_config("paper", {**PLAIN, "step": 0.3, "score": "given"}))
    run.score_by(lambda ranked: SCORES[name](ranked))
    assert timeless(list(run.trials())) == timeless(wanted)


def test_a_score_is_passed_in_as_a_function() -> None:
    rows, seen = tiny_rows(30, pairs=True), []

    def score(ranked: Ranked) -> list[np.ndarray]:
        """Units leave by their numbers, the highest first."""
        seen.append(ranked)
        return [-np.arange(block.size(ranked.checkpoint.dimensions), dtype=float) for block in ranked.blocks]

    result = axformer.prune(
        *(tiny_model(), tiny_tokenizer(), rows),
        **{**PLAIN, "step": 0.5, "until": 0.5, "accept_poor_model": True},
        score=score,
    )
    assert seen
    for layer in result.plan.layers:
        assert list(layer.heads) == list(range(len(layer.heads)))
        assert [start for start, _ in layer.neurons] == [0]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (lambda ranked: [np.ones(2)], "return one array for each of the"),
        (
            lambda ranked: [np.full(block.size(ranked.checkpoint.dimensions), np.nan) for block in ranked.blocks],
            "finite",
        ),
    ],
)
def test_a_function_that_does_not_score_every_unit_is_refused(found: ScoreUnits, message: str) -> None:
    run = run_of(make_config("paper", {**PLAIN, "score": "given"}))
    run.score_by(found)
    with pytest.raises(ConfigError, match=message):
        list(run.trials())


def test_a_score_goes_with_a_method_that_asks_for_one() -> None:
    with pytest.raises(ConfigError, match="score=given takes a function"):
        trials_of(score="given")
    with pytest.raises(ConfigError, match="method=layers takes no function"):
        run_of(make_config("paper", {"method": "layers", "drop": 1})).score_by(lambda ranked: [])
    with pytest.raises(ConfigError, match="knob 'score' is of method=rank"):
        axformer.prune(tiny_model(), tiny_tokenizer(), tiny_rows(9), score=lambda ranked: [])
