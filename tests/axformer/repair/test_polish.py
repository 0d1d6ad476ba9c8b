"""Compression and then a training with the untouched model as teacher, from rows without labels."""

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from axformer import opening
from axformer.artifact import load
from axformer.config import CompressConfig
from axformer.data.columns import DataSource
from axformer.errors import ConfigError, DataError
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.dataset import prepare
from axformer.opening import Inputs
from axformer.repair import training
from axformer.repair.refit import Refit, Refits
from axformer.repair.storage import read_refit
from axformer.run import PruningRun
from axformer.surroundings import Surroundings
from axformer.tasks.divergence import Divergence
from axformer.wire.finetuning import completed, make_settings
from axformer.wire.run import SettledRun, read_run
from axformer.wire.steps import Step, StepName
from tests.family_cases import Case, checkpoint_of, data_of
from tests.runs import open_run
from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows

CONFIG = CompressConfig(confirm=0.0, within_points=None, budgets=(0.5,), table_rows=8, accept_poor_model=True)
LESSONS = {"teacher": True, "teacher_weight": 1.0, "learning_rate": 1e-3, "batch_size": 4, "epochs": 3}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("polish")
    save_tiny_checkpoint(root / "checkpoint")
    write_rows(root / "validation.jsonl", tiny_rows(24))
    write_rows(root / "texts.jsonl", [{"text": row["text"]} for row in tiny_rows(20, seed=2)])
    return root


def opened(place: Path, lessons: dict[str, Any]) -> PruningRun:
    return open_run(
        place / "checkpoint",
        DataSource(str(place / "validation.jsonl")),
        config=CONFIG,
        train=DataSource(str(place / "texts.jsonl")),
        finetune=make_settings(lessons),
    )


def refits_of(run: PruningRun) -> Refit:
    """The refit of a run's plan, computed anew."""
    checkpoint = load_checkpoint(run._checkpoint.directory)
    return Refits(checkpoint.model, checkpoint.architecture, run.deciding.samples).of(run.plan)


@pytest.mark.slow
def test_a_compressed_model_is_trained_by_its_teacher_without_labels(place: Path, tmp_path: Path) -> None:
    run = opened(place, LESSONS)
    for _ in run.trials():
        pass
    steps: list[Step] = []
    run.repair(Surroundings(tmp_path / "state", steps.append))
    report = run.publish(tmp_path / "result")

    assert report["refit"]["blocks"] > 0
    told = report["finetune"]
    assert told["settings"]["teacher_weight"] == 1.0
    assert told["data"]["rows"] == 20
    assert told["steps"] == 5 * told["epochs"]
    assert 1 <= told["kept_epoch"] <= told["epochs"] <= 3
    assert [point["step"] for point in told["curve"]] == list(range(1, told["steps"] + 1))
    assert told["before"]["validation"] != report["pruned"]["validation"]
    assert {step.name for step in steps} == {StepName.TRAINING}
    assert [step.done for step in steps] == list(range(1, told["steps"] + 1))
    assert steps[1].sentence.startswith("training the model (epoch 1 of 3): 2 of 15, loss ")
    assert json.loads((tmp_path / "result" / "plan.json").read_text())["repair"] is not None
    assert "training rows" in (tmp_path / "result" / "report.html").read_text()
    fits, stored = refits_of(run), read_refit(tmp_path / "result")
    assert all(torch.equal(fit.weight, stored[block].weight) for block, fit in fits.items()), "as before the training"
    weights, made = run.compact_model().state_dict(), load(tmp_path / "result").state_dict()
    assert any(not torch.equal(weight, made[name]) for name, weight in weights.items())

    again = opened(place, LESSONS)
    for _ in again.trials():
        pass
    stepped: list[Step] = []
    again.repair(Surroundings(tmp_path / "state", stepped.append))
    assert stepped == [], "the same training had ended, so its weights are taken from its state"
    assert again.publish(tmp_path / "again")["pruned"]["validation"] == report["pruned"]["validation"]


def polished(place: Path, epochs: int, **more: Any) -> PruningRun:
    return open_run(
        place / "checkpoint",
        DataSource(str(place / "validation.jsonl")),
        config=CONFIG.model_copy(update={"polish": epochs, "budgets": (0.7, 0.2)}),
        calibrate=DataSource(str(place / "texts.jsonl")),
        **more,
    )


def test_a_polish_trains_the_refitted_model_of_every_budget(place: Path, tmp_path: Path) -> None:
    refitted, run = polished(place, 0), polished(place, 2)
    before, after = list(refitted.trials()), list(run.trials(surroundings=Surroundings(tmp_path / "state")))
    assert [trial.plan for trial in after] == [trial.plan for trial in before]
    assert after[1].loss == before[1].loss, "it is near already, and left as it was"
    assert after[2].loss != before[2].loss, "so much is gone that a training brings it nearer"
    assert len(after) == 3
    report = run.publish(tmp_path / "result")
    told = report["finetune"]
    assert told["before"]["validation"]["loss"] == pytest.approx(before[-1].loss, rel=1e-4)
    assert report["pruned"]["validation"]["loss"] == pytest.approx(after[-1].loss, rel=1e-4)
    assert (told["epochs"], told["data"]["rows"]) == (2, 20)
    assert (told["settings"]["teacher_weight"], told["settings"]["epochs"]) == (1.0, 2)
    card = " ".join((tmp_path / "result" / "README.md").read_text().split())
    assert "`axformer apply --upto` makes models of the same size, without the polish." in card
    losses = [told["before"]["validation"]["loss"], report["pruned"]["validation"]["loss"]]
    assert re.search(rf"validation loss \|[^|]*\| {losses[0]:.4f} \| {losses[1]:.4f}", card), "each step has its figure"
    again = polished(place, 2)
    assert [trial.loss for trial in again.trials(surroundings=Surroundings(tmp_path / "state"))] == [
        trial.loss for trial in after
    ]
    made = load(tmp_path / "result").state_dict()
    assert all(torch.equal(weight, made[name]) for name, weight in again.compact_model().state_dict().items())


def test_a_polish_trains_on_all_texts_and_weights_are_fitted_to_as_many_as_add_something(tmp_path: Path) -> None:
    save_tiny_checkpoint(tmp_path / "checkpoint")
    write_rows(tmp_path / "validation.jsonl", tiny_rows(24))
    texts = [{"text": f"{row['text']} {number}"} for number, row in enumerate(tiny_rows(1300, seed=2))]
    write_rows(tmp_path / "texts.jsonl", texts)
    asked = {"calibrate": DataSource(str(tmp_path / "texts.jsonl"))}
    for knobs, fitted, taught in (({}, 1000, 1300), ({"calibrate_rows": 40}, 40, 40)):
        config = CONFIG.model_copy(update={"polish": 1, **knobs})
        run = open_run(tmp_path / "checkpoint", DataSource(str(tmp_path / "validation.jsonl")), config=config, **asked)
        for _ in run.trials():
            pass
        run.repair()
        assert run.calibration is not None
        assert run._repaired is not None
        assert (len(run.calibration.rows), run._repaired.record.data.rows) == (fitted, taught)


def test_held_out_rows_that_a_polish_trains_on_are_doubted_also_where_no_weights_are_fitted_to_them(
    tmp_path: Path,
) -> None:
    save_tiny_checkpoint(tmp_path / "checkpoint")
    write_rows(tmp_path / "validation.jsonl", tiny_rows(24))
    words = sorted({word for row in tiny_rows(200) for word in row["text"].split()})[:7]
    rows = [{"text": " ".join(some), "label": index % 2} for index, some in enumerate(product(words, repeat=4))]
    write_rows(tmp_path / "texts.jsonl", rows)
    asked = {name: DataSource(str(tmp_path / f"{name}.jsonl")) for name in ("validation", "texts", "held-out")}
    opened = open_run(tmp_path / "checkpoint", asked["validation"], config=CONFIG, calibrate=asked["texts"])
    assert opened.calibration is not None
    fitted = set(opened.calibration.rows.table["text"])
    write_rows(tmp_path / "held-out.jsonl", [row for row in rows if row["text"] not in fitted])
    for epochs, is_doubted in ((0, False), (1, True)):
        run = open_run(
            tmp_path / "checkpoint",
            asked["validation"],
            config=CONFIG.model_copy(update={"polish": epochs}),
            calibrate=asked["texts"],
            test=asked["held-out"],
        )
        assert any("test data: " in note and "calibration rows" in note for note in run.notes) is is_doubted


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A checkpoint, and as many texts as a polish that nobody named asks for."""
    files = tmp_path_factory.mktemp("many")
    save_tiny_checkpoint(files / "checkpoint")
    for name, rows in (
        ("validation", tiny_rows(24)),
        ("texts", tiny_rows(4000, seed=2)),
        ("few", tiny_rows(60, seed=2)),
    ):
        write_rows(files / f"{name}.jsonl", rows)
    return {name: str(files / f"{name}.jsonl") for name in ("validation", "texts", "few")} | {
        "checkpoint": str(files / "checkpoint")
    }


@pytest.mark.parametrize(
    ("asked", "most", "epochs"),
    [
        ({}, 40_000, 2),
        ({"goal": "speedup=3"}, 40_000, 2),
        ({"goal": "operations=2"}, 40_000, 0),
        ({"goal": "within-points=1"}, 40_000, 0),
        ({"calibrate": "few"}, 40_000, 0),
        ({"calibrate": None}, 40_000, 0),
        ({"train": "few", "finetune": {"epochs": 1}}, 40_000, 0),
        ({"config": {"polish": 0}}, 40_000, 0),
        ({"config": {"polish": 1}}, 40_000, 1),
        ({"config": {"calibrate_rows": 30}}, 40_000, 0),
        ({}, 7_999, 1),
        ({}, 3_999, 0),
    ],
)
def test_a_strong_target_is_polished_by_itself_where_texts_suffice(
    asked: dict[str, Any], most: int, epochs: int, many: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_MOST_TAUGHT", most)
    inputs = {
        "checkpoint": "checkpoint",
        "validation": "validation",
        "calibrate": "texts",
        "goal": "operations=4",
    } | asked
    words = {name: many.get(value, value) if isinstance(value, str) else value for name, value in inputs.items()}
    settled = read_run({name: value for name, value in words.items() if value is not None}).settled()
    run = PruningRun.open(SettledRun.model_validate(settled.model_dump(mode="json")))
    assert run.config.needs.polish == run.config.model_dump()["polish"] == epochs
    is_told = any(f"polish={epochs}, since so much is to go" in note for note in run.notes)
    assert is_told == (epochs > 0 and "config" not in asked)


def test_a_model_that_cannot_be_trained_is_not_polished_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_MANY_TEXTS", 1)
    for task, epochs in (("classification", 2), ("masked_lm", 0)):
        case = Case("bert", task)
        checkpoint, data = checkpoint_of(case), data_of(case)
        config = CONFIG.model_copy(update={"polish": None, "max_length": 24})
        assert PruningRun(Inputs(checkpoint, data, texts=data), config).config.needs.polish == epochs


CASES = [
    *(Case("bert", task) for task in ("regression", "token_classification", "question_answering", "multiple_choice")),
    *(Case(family, "classification") for family in ("albert", "deberta-v2", "modernbert", "xlnet", "llama")),
    Case("gpt2", "causal_lm"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_polish_knows_every_task_and_family(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every training is kept here, also one that brings nothing."""
    monkeypatch.setattr(training, "POLISH", training.POLISH.model_copy(update={"patience": None}))
    checkpoint, losses = checkpoint_of(case), []
    for epochs in (0, 3):
        config = CONFIG.model_copy(update={"polish": epochs, "max_length": 24})
        run = PruningRun(Inputs(checkpoint, prepare(data_of(case).rows, checkpoint, config)), config)
        losses.append([trial.loss for trial in run.trials()])
    assert losses[0][0] == losses[1][0], "the untouched model is not trained"
    assert losses[0][1] != losses[1][1]


@pytest.mark.slow
def test_a_polish_comes_closer_to_the_untouched_model(place: Path) -> None:
    """On the rows that it is trained on, which is what the loss of a training with a teacher alone measures."""
    checkpoint = load_checkpoint(place / "checkpoint")
    far = []
    for epochs in (0, 12):
        run = polished(place, epochs)
        for _ in run.trials():
            pass
        assert run.calibration is not None
        calibrating = run.calibration.samples
        distance = Divergence(checkpoint.task, checkpoint.model, calibrating.batches)
        small = run.compact_model()
        with torch.inference_mode():
            far.append(torch.cat([distance.losses(small(**one.inputs), one) for one in calibrating.batches]).mean())
    assert far[1] < far[0]


@pytest.mark.parametrize("rate", [5e-5, 0.1])
def test_no_polish_takes_a_model_further_from_the_untouched_one(
    place: Path, rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the deciding rows: a model that is near already is left as it was, as is one that a training wrecks."""
    monkeypatch.setattr(training, "POLISH", training.POLISH.model_copy(update={"learning_rate": rate}))
    far: list[list[float]] = []
    for epochs in (0, 2):
        run, losses = polished(place, epochs), list[float]()
        rows = run.deciding.samples
        distance = Divergence(run._checkpoint.task, run._checkpoint.model, rows.batches)
        for trial in run.trials():
            with torch.inference_mode():
                small = run.compact_model()
                each = [distance.losses(small(**one.inputs), one) for one in rows.batches]
            losses += [float(torch.cat(each).mean())] if trial.plan is not None else []
        far.append(losses)
    assert len(far[0]) == len(far[1]) == 2
    assert all(polished <= before + 1e-6 for before, polished in zip(*far, strict=True))


def test_a_polish_is_refused_with_training_data_and_where_nothing_can_be_trained(place: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"polish=1 trains every model.*give these rows as calibrate instead of train"
    ):
        polished(place, 1, train=DataSource(str(place / "validation.jsonl")))
    case = Case("bert", "masked_lm")
    checkpoint, config = checkpoint_of(case), CONFIG.model_copy(update={"polish": 1})
    with pytest.raises(ConfigError, match="polish=1: models of the task 'masked_lm' cannot be trained here"):
        PruningRun(Inputs(checkpoint, data_of(case)), config)


def test_rows_without_labels_need_a_teacher_with_all_the_weight(place: Path) -> None:
    for lessons in ({}, {"teacher": True}):
        with pytest.raises(DataError, match="no column 'label'"):
            opened(place, lessons)


def test_a_methods_own_defaults_stand_where_nothing_is_given() -> None:
    defaults = {"epochs": 3, "teacher": True}
    assert completed(None, defaults) == make_settings(defaults)
    assert completed(make_settings({"epochs": 1}), defaults).epochs == 1
    assert completed(make_settings({"epochs": 1}), defaults).teacher
    with pytest.raises(ConfigError, match="set teacher=true too"):
        completed(make_settings({"teacher": True, "temperature": 4.0}).model_copy(update={"teacher": False}), {})


def test_a_polish_that_is_not_kept_says_so(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "POLISH", training.POLISH.model_copy(update={"learning_rate": 0.1}))
    run = polished(place, 1)
    for _ in run.trials(surroundings=Surroundings(tmp_path / "state")):
        pass
    report = run.publish(tmp_path / "result")
    assert report["finetune"]["kept_epoch"] == 0
    card = " ".join((tmp_path / "result" / "README.md").read_text().split())
    assert "without training: of its attention heads" in card
    assert "A training on 20 rows lowered the loss on the deciding rows in no epoch, so it was not kept." in card
    page = (tmp_path / "result" / "report.html").read_text()
    assert "No epoch lowered the loss on the deciding rows, so the weights are those of before." in page
    assert not json.loads((tmp_path / "result" / "plan.json").read_text()).get("trained")
