"""Layer dropping from its trials to its result, with and without training."""

import json
import math
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from axformer.apply import Lessons, apply_plan
from axformer.config import LayersConfig, make_config
from axformer.config.layers import Schedule, Strategy
from axformer.data.columns import DataSource
from axformer.data.reading import rows_of
from axformer.errors import ConfigError, DataError
from axformer.intake.checkpoint import from_memory
from axformer.intake.dataset import prepare
from axformer.methods.layers.method import LayerOrigins, order_of
from axformer.opening import Inputs
from axformer.plan.path import Stop
from axformer.plan.plan import Plan, read_plan_file
from axformer.plan.trial import Trial, Verdict
from axformer.repair.training import Training
from axformer.run import PruningRun
from axformer.surroundings import Surroundings
from axformer.wire.finetuning import make_settings
from tests.axformer.methods.test_any_method import CHECKPOINT, run_of, timeless
from tests.family_cases import Case, checkpoint_of
from tests.runs import open_run
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_model, tiny_rows, tiny_tokenizer, write_rows

PLAIN: dict[str, Any] = {"method": "layers", "confirm": 0.0, "within_points": None}
LAYERS = 4
SETTINGS = {"epochs": 1, "batch_size": 8, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("layers")
    save_tiny_checkpoint(directory / "checkpoint", tiny_config(layers=LAYERS))
    for name, count, seed in (("validation", 24, 1), ("test", 16, 2), ("train", 24, 3)):
        write_rows(directory / f"{name}.jsonl", tiny_rows(count, seed=seed))
    return directory


def opened(files: Path, **knobs: object) -> PruningRun:
    return open_run(
        files / "checkpoint",
        DataSource(str(files / "validation.jsonl")),
        test=DataSource(str(files / "test.jsonl")),
        config=make_config("paper", {**PLAIN, **knobs}),
        train=DataSource(str(files / "train.jsonl")),
        finetune=make_settings(SETTINGS),
    )


def weights_of(run: PruningRun) -> dict[str, Tensor]:
    return {name: weight.clone() for name, weight in run.compact_model().state_dict().items()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def dropped(trial: Trial) -> tuple[int, ...]:
    assert trial.plan is not None
    return Plan(layers=trial.plan).dropped


def test_one_layer_more_goes_in_every_trial() -> None:
    base, *trials = run_of(make_config("paper", PLAIN)).trials()
    layers = CHECKPOINT.dimensions.layers
    assert [dropped(trial) for trial in trials] == [tuple(range(layers - count, layers)) for count in range(1, layers)]
    assert [trial.element for trial in trials] == [f"encoder.layers.{layers - count}" for count in range(1, layers)]
    assert base.plan is None


def test_a_model_whose_loss_is_no_number_is_rejected_and_its_trial_can_be_read_again() -> None:
    model = tiny_model()
    with torch.no_grad():  # the first layer brings back into range what overflows in the second one's scores
        model.bert.embeddings.LayerNorm.weight.mul_(6e18)
        first = model.bert.encoder.layer[0].attention.self
        for projection in (first.query, first.key, first.value):
            projection.weight.zero_()
    checkpoint = from_memory(model, tiny_tokenizer())
    config = make_config("paper", {**PLAIN, "strategy": "explicit", "layers": [0, 1], "target_size": 0.5})
    run = PruningRun(Inputs(checkpoint, prepare(rows_of(tiny_rows(30, pairs=True)), checkpoint, config)), config)
    base, trial = run.trials()
    assert math.isfinite(base.loss)
    assert math.isnan(trial.loss)
    assert trial.verdict is Verdict.REJECT
    assert run.plan == Plan.full(run.dimensions)
    again = Trial.model_validate_json(trial.model_dump_json())
    assert math.isnan(again.loss)
    assert again.model_dump(exclude={"loss"}) == trial.model_dump(exclude={"loss"})


def test_as_many_layers_go_as_are_asked_for_and_no_rows_are_set_apart() -> None:
    config = make_config("paper", {"method": "layers", "drop": 2})
    assert (config.confirm, config.within_points) == (0.0, None)
    assert [dropped(trial) for trial in list(run_of(config).trials())[1:]] == [(1, 2)]


def test_a_run_ends_with_the_first_model_that_lost_more_than_is_allowed() -> None:
    *trials, last = run_of(make_config("paper", {**PLAIN, "confirm": 0.3, "within_points": 0.0})).trials()
    assert last.verdict is Verdict.REJECT
    assert all(trial.verdict is not Verdict.REJECT for trial in trials)


@pytest.mark.parametrize("strategy", [strategy for strategy in Strategy if strategy is not Strategy.EXPLICIT])
def test_every_strategy_drops_what_its_order_says(strategy: Strategy) -> None:
    run = run_of(make_config("paper", {**PLAIN, "strategy": strategy}))
    order = order_of(run._ground)
    trials = list(run.trials())[1:]
    assert [dropped(trial) for trial in trials] == [tuple(sorted(order[: count + 1])) for count in range(len(trials))]


def test_greedy_drops_the_layer_without_which_the_loss_is_lowest() -> None:
    run = run_of(make_config("paper", {**PLAIN, "strategy": "greedy", "drop": 1}))
    (_, chosen) = run.trials()
    every = [
        list(run_of(make_config("paper", {**PLAIN, "strategy": "explicit", "layers": [index]})).trials())[1].loss
        for index in range(CHECKPOINT.dimensions.layers)
    ]
    assert chosen.loss == pytest.approx(min(every), abs=1e-6)


def test_the_threshold_says_how_many_layers_go() -> None:
    scores = order_of(run_of(make_config("paper", {**PLAIN, "strategy": "contribution"}))._ground)
    assert len(scores) == CHECKPOINT.dimensions.layers
    with pytest.raises(ConfigError, match=r"threshold=0\.0001: 3 of the model's 3 layers change their input less"):
        list(run_of(make_config("paper", {**PLAIN, "strategy": "contribution", "threshold": 0.0001})).trials())


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"strategy": "explicit"}, "strategy=explicit and layers go together"),
        ({"layers": [1]}, "strategy=explicit and layers go together"),
        ({"threshold": 0.9}, "threshold=0.9 is of strategy=contribution"),
        ({"strategy": "contribution", "threshold": 0.9, "drop": 1}, "both say how many layers go"),
        ({"drop": 3}, "3 layers cannot be dropped: of 3 layers this strategy drops 0 to 2"),
        ({"strategy": "even_alternate", "drop": 2}, "2 layers cannot be dropped"),
        ({"strategy": "explicit", "layers": [0, 9]}, "layer 9 cannot be dropped"),
        ({"strategy": "explicit", "layers": [0, 1, 2]}, "all 3 layers of the model are named"),
    ],
)
def test_wrong_knobs_are_named(knobs: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run_of(make_config("paper", {**PLAIN, **knobs}))


def test_a_run_without_training_data_says_what_to_expect() -> None:
    assert any("give --train" in note for note in run_of(make_config("paper", PLAIN)).notes)


@pytest.mark.slow
def test_every_model_of_the_path_is_trained_and_the_result_is_an_ordinary_checkpoint(
    files: Path, tmp_path: Path
) -> None:
    run = opened(files, confirm=0.4)
    trained = list(run.trials())
    untrained = list(run_of(make_config("paper", PLAIN)).trials())
    assert trained[1].loss != untrained[1].loss
    run.repair()
    report = run.publish(tmp_path / "result")
    kept = next(point for point in report["path"] if point["kept"])
    assert kept["seq"] > 0, "a random model loses nothing by training"
    assert report["finetune"]["settings"]["epochs"] == 1
    assert report["pruned"]["test"]["loss"] == pytest.approx(kept["test"]["loss"], abs=1e-5)
    config = json.loads((tmp_path / "result" / "stock" / "config.json").read_text())
    assert (config["model_type"], config["num_hidden_layers"]) == ("bert", LAYERS - kept["seq"])
    assert "`axformer apply --upto` with `--train` writes any" in " ".join(
        (tmp_path / "result" / "README.md").read_text().split()
    )
    plan = read_plan_file(tmp_path / "result")
    assert (plan.trained, plan.format) == (True, "axformer-plan/2")


def test_trained_models_are_told_of_also_where_none_is_kept(files: Path, tmp_path: Path) -> None:
    run = opened(files, confirm=0.4, within_points=0.5)
    for _ in run.trials():
        pass
    report = run.publish(tmp_path / "result")
    assert report["path"][0]["kept"], "ten rows certify nothing"
    assert len(report["path"]) > 1
    card = " ".join((tmp_path / "result" / "README.md").read_text().split())
    assert "Nothing was removed or trained, so this is the untouched model" in card
    assert "without training" not in card
    assert "`axformer apply --upto` with `--train` writes any" in card


@pytest.mark.parametrize("schedule", [Schedule.GRADUAL, Schedule.FINETUNE_FIRST, Schedule.FINETUNE_FIRST_FROZEN])
def test_only_what_is_dropped_at_once_is_said_to_be_applied_again(schedule: Schedule) -> None:
    other = LayersConfig.applied_otherwise({"method": "layers", "schedule": schedule.value}, has_new_head=False)
    assert other == f"trained as with schedule=at_once, and not with {schedule.value}"
    assert LayersConfig.applied_otherwise({"method": "layers", "schedule": "at_once"}, has_new_head=False) is None


@pytest.mark.slow
def test_apply_trains_any_model_of_the_path_as_the_run_did(files: Path, tmp_path: Path) -> None:
    run = opened(files, confirm=0.4)
    trials = list(run.trials())
    run.publish(tmp_path / "result")
    for seq in (1, 2):
        apply_plan(
            read_plan_file(tmp_path / "result"),
            files / "checkpoint",
            DataSource(str(files / "validation.jsonl")),
            tmp_path / f"applied-{seq}",
            forms=["stock"],
            stop=Stop(trials, seq),
            lessons=Lessons(DataSource(str(files / "train.jsonl")), make_settings(SETTINGS)),
        )
        ended = opened(files)
        list(ended.trials(upto=seq))
        assert same(load_file(tmp_path / f"applied-{seq}" / "stock" / "model.safetensors"), weights_of(ended))


def test_rows_without_labels_train_by_the_teacher_alone_and_are_told_so(files: Path, tmp_path: Path) -> None:
    unlabelled = write_rows(tmp_path / "texts.jsonl", [{"text": row["text"]} for row in tiny_rows(24, seed=3)])

    def opened(**settings: object) -> PruningRun:
        return open_run(
            files / "checkpoint",
            DataSource(str(files / "validation.jsonl")),
            config=make_config("paper", {**PLAIN, "drop": 2}),
            train=DataSource(str(unlabelled)),
            finetune=make_settings({**SETTINGS, **settings}),
        )

    with pytest.raises(DataError, match=r"has no column 'label'.*without labels.*teacher=true and teacher_weight=1$"):
        opened()
    run = opened(teacher=True, teacher_weight=1)
    assert list(run.trials())[-1].verdict is Verdict.ACCEPT


@pytest.mark.slow
@pytest.mark.parametrize("schedule", Schedule)
def test_a_resumed_run_gives_the_same_weights(files: Path, tmp_path: Path, schedule: Schedule) -> None:
    whole = list(islice(opened(files, schedule=schedule).trials(), 3))
    resumed = opened(files, schedule=schedule)
    trials = resumed.trials(replay=whole[:2], surroundings=Surroundings(tmp_path))
    assert timeless([next(trials) for _ in range(3)]) == timeless(whole)
    again = opened(files, schedule=schedule)
    assert timeless(list(again.trials(upto=2))) == timeless(whole)
    trials.close()
    assert same(weights_of(again), weights_of(resumed))


@pytest.mark.slow
def test_schedules_lead_to_different_models(files: Path) -> None:
    losses = {schedule: list(opened(files, schedule=schedule).trials(upto=1))[1].loss for schedule in Schedule}
    assert len(set(losses.values())) == len(Schedule)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", Schedule)
def test_layers_that_the_user_freezes_are_never_trained(files: Path, schedule: Schedule) -> None:
    run = open_run(
        files / "checkpoint",
        DataSource(str(files / "validation.jsonl")),
        config=make_config("paper", {**PLAIN, "drop": 1, "schedule": schedule}),
        train=DataSource(str(files / "train.jsonl")),
        finetune=make_settings({**SETTINGS, "freeze": "0"}),
    )
    before = weights_of(run)
    for _ in run.trials():
        pass
    learned = {name for name, weight in weights_of(run).items() if not torch.equal(weight, before[name])}
    assert any("layer.1." in name for name in learned)
    assert not any("layer.0." in name for name in learned)


def test_shared_layers_are_only_dropped_at_once(files: Path) -> None:
    checkpoint = checkpoint_of(Case("albert", "classification"))
    run = opened(files)
    assert isinstance(run._repair, Training)
    with pytest.raises(ConfigError, match="share their weights, so none can be trained and then left out"):
        LayerOrigins(checkpoint, run._repair, Schedule.GRADUAL)
