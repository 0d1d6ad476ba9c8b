"""Ranked pruning that trains after every step: each step begins with the trained model before it, also after a stop."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from axformer.cli.main import app
from axformer.config import make_config
from axformer.data.columns import DataSource
from axformer.errors import ConfigError
from axformer.model.masking import masked
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial
from axformer.run import PruningRun
from axformer.surroundings import Surroundings
from axformer.wire.finetuning import make_settings
from tests.runs import open_run
from tests.tiny_families import tiny_family_model, tiny_family_tokenizer
from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows

KNOBS: dict[str, Any] = {"method": "rank", "step": 0.3, "until": 0.6, "finetune_each": 1, "accept_poor_model": True}
KNOBS |= {"confirm": 0.0, "within_points": None}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("steps")
    save_tiny_checkpoint(directory / "checkpoint")
    for name, count, seed in (("validation", 24, 1), ("test", 16, 2), ("train", 24, 3)):
        write_rows(directory / f"{name}.jsonl", tiny_rows(count, seed=seed))
    return directory


def opened(files: Path, checkpoint: str = "checkpoint", *, has_train: bool = True, **knobs: Any) -> PruningRun:
    return open_run(
        *(files / checkpoint, DataSource(str(files / "validation.jsonl"))),
        test=DataSource(str(files / "test.jsonl")),
        config=make_config("paper", {**KNOBS, **knobs}),
        train=DataSource(str(files / "train.jsonl")) if has_train else None,
        finetune=make_settings({"epochs": 5, "batch_size": 8, "learning_rate": 1e-3}),
    )


def timeless(trials: list[Trial]) -> list[Trial]:
    return [trial.model_copy(update={"seconds": 0.0}) for trial in trials]


def test_resumed_equals_undisturbed(files: Path, tmp_path: Path) -> None:
    run = opened(files)
    whole = list(run.trials())
    assert len(whole) == 3
    for count, directory in ((2, None), (2, tmp_path), (3, tmp_path)):
        resumed = opened(files)
        assert timeless(list(resumed.trials(whole[:count], surroundings=Surroundings(directory)))) == timeless(whole)
        weights = resumed.compact_model().state_dict()
        assert all(torch.equal(weights[name], weight) for name, weight in run.compact_model().state_dict().items())


def test_a_step_ranks_and_cuts_the_trained_model_of_the_one_before(files: Path) -> None:
    run = opened(files)
    _, first, second = run.trials()
    recovery = run._ground.recovery
    assert recovery is not None
    assert first.plan is not None
    assert second.plan is not None
    plan = Plan(layers=first.plan)
    whole = recovery.whole_of(plan, run._ground.surroundings)
    small, course = recovery.model_of(plan, run._ground.surroundings)
    assert course.epochs == 1, "the knob says how long a step is trained"
    inputs = run.deciding.samples.batches[0].inputs
    with torch.inference_mode(), masked(whole, run._checkpoint.architecture, plan):
        assert torch.allclose(whole(**inputs).logits, small(**inputs).logits, atol=1e-5)
    kept = [set(layer.heads) for layer in first.plan]
    assert all(set(layer.heads) <= before for layer, before in zip(second.plan, kept, strict=True))


def test_the_result_is_the_trained_model_of_the_path(files: Path, tmp_path: Path) -> None:
    run = opened(files, confirm=0.4, within_points=90)
    list(run.trials())
    report = run.publish(tmp_path / "result")
    kept = next(point for point in report["path"] if point["kept"])
    assert kept["seq"] > 0, "so much may be lost"
    assert report["pruned"]["test"]["loss"] == pytest.approx(kept["test"]["loss"], abs=1e-5)
    assert report["finetune"]["settings"]["epochs"] == 1
    card = " ".join((tmp_path / "result" / "README.md").read_text().split())
    assert "what stayed was trained after each of them" in card


def test_without_training_data_it_is_refused(files: Path) -> None:
    with pytest.raises(ConfigError, match="finetune_each=1 trains after every step, and there is no training data"):
        opened(files, has_train=False)


def test_refitting_and_training_after_each_step_exclude_each_other(files: Path) -> None:
    with pytest.raises(ConfigError, match="both change what every step leaves"):
        opened(files, repair="refit")


def test_layers_that_share_their_weights_are_refused(files: Path) -> None:
    tiny_family_model("albert", num_labels=2).save_pretrained(files / "albert")
    tiny_family_tokenizer("albert").save_pretrained(files / "albert")
    with pytest.raises(ConfigError, match="finetune_each=1: the layers of models of type 'albert' share their weights"):
        opened(files, "albert")


def test_applying_a_step_is_not_said_to_give_its_model(files: Path, tmp_path: Path) -> None:
    """Its training went on from the step before; what ``apply --train`` gives is trained once."""
    run = opened(files)
    for _ in run.trials():
        pass
    run.publish(tmp_path / "result")
    card = " ".join((tmp_path / "result" / "README.md").read_text().split())
    other = "makes models of the same size, trained once, and not after every step."
    assert f"not their weights: `axformer apply --upto` with `--train` {other}" in card
    report = json.loads((tmp_path / "result" / "report.json").read_text())
    for point in report["path"]:
        point["kept"] = point["seq"] == 0
    (tmp_path / "result" / "report.json").write_text(json.dumps(report))
    told = CliRunner().invoke(app, ["path", str(tmp_path / "result"), "--speedup", "1.1"])
    assert "Write one of the same size, trained once, and not after every step: axformer apply" in told.output
