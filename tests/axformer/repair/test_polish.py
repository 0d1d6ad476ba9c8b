"""Compression and then a training with the untouched model as teacher, from rows without labels."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from axformer.artifact import load
from axformer.config import CompressConfig
from axformer.data.source import DataSource
from axformer.errors import ConfigError, DataError
from axformer.repair.base import Surroundings
from axformer.repair.settings import completed, make_settings
from axformer.run import PruningRun
from axformer.wire.steps import Step, StepName
from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows

CONFIG = CompressConfig(confirm=0.0, within_points=None, budgets=(0.5,), table_rows=8, accept_poor_model=True)
LESSONS = {"teacher": True, "teacher_weight": 1.0, "learning_rate": 1e-3, "batch_size": 4, "epochs": 3, "patience": 2}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("polish")
    save_tiny_checkpoint(root / "checkpoint")
    write_rows(root / "validation.jsonl", tiny_rows(24))
    write_rows(root / "texts.jsonl", [{"text": row["text"]} for row in tiny_rows(20, seed=2)])
    return root


def opened(place: Path, lessons: dict[str, Any]) -> PruningRun:
    return PruningRun.open(
        place / "checkpoint",
        DataSource(str(place / "validation.jsonl")),
        config=CONFIG,
        train=DataSource(str(place / "texts.jsonl")),
        finetune=make_settings(lessons),
    )


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
    weights, made = run.compact_model().state_dict(), load(tmp_path / "result").state_dict()
    assert any(not torch.equal(weight, made[name]) for name, weight in weights.items())

    again = opened(place, LESSONS)
    for _ in again.trials():
        pass
    stepped: list[Step] = []
    again.repair(Surroundings(tmp_path / "state", stepped.append))
    assert stepped == [], "the same training had ended, so its weights are taken from its state"
    assert again.publish(tmp_path / "again")["pruned"]["validation"] == report["pruned"]["validation"]


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
