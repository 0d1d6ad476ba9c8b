"""A result whose layers are dropped, from its trials to its files, and what the commands make of it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification
from typer.testing import CliRunner

from axformer.artifact import load
from axformer.cli.main import app
from axformer.config import make_config
from axformer.data.columns import DataSource
from axformer.plan.plan import read_plan_file
from axformer.plan.trial import Phase, Verdict
from tests.runs import open_run

DROPPED = ("layer.2.drop", "layer.0.drop")
KEPT = "1"
"""The layer that is left of three."""


@pytest.fixture(scope="module")
def shallow(tmp_path_factory: pytest.TempPathFactory, checkpoint: Path, data: Path) -> Path:
    """The result of a run that dropped two layers of three."""
    config = make_config("paper", {"attention_top_k": None, "max_length": 10})
    run = open_run(checkpoint, DataSource(str(data)), config=config)
    base = next(iter(run.trials()))
    for seq, element in enumerate(DROPPED, 1):
        changes = {"seq": seq, "phase": Phase.LAYER, "element": element, "verdict": Verdict.ACCEPT, "helped": 0}
        run.decisions.trace.append(base.model_copy(update=changes))
    directory = tmp_path_factory.mktemp("shallow") / "result"
    run.publish(directory)
    return directory


def command(*arguments: object) -> Any:
    ran = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert ran.exit_code == 0, ran.output
    return ran


def test_its_files_say_that_layers_are_dropped(shallow: Path) -> None:
    report, file = json.loads((shallow / "report.json").read_text()), read_plan_file(shallow)
    assert report["removed"] == list(DROPPED)
    assert [(form["name"], form["made"]) for form in report["forms"]] == [("stock", True), ("compact", True)]
    assert file.format == "axformer-plan/2"
    assert file.plan.dropped == (0, 2)
    assert "3 layers, dropped: 0, 2" in (shallow / "plan.svg").read_text()
    card = (shallow / "README.md").read_text()
    assert 'AutoModelForSequenceClassification.from_pretrained("stock")' in card
    for name in DROPPED:
        assert name in card


def test_its_stock_form_is_the_remaining_layer_of_the_checkpoint(shallow: Path, checkpoint: Path) -> None:
    whole, ordinary = (
        AutoModelForSequenceClassification.from_pretrained(path) for path in (checkpoint, shallow / "stock")
    )
    assert type(ordinary) is type(whole)
    assert ordinary.config.num_hidden_layers == 1
    theirs = whole.state_dict()
    for name, values in ordinary.state_dict().items():
        assert torch.equal(values, theirs[name.replace("layer.0.", f"layer.{KEPT}.")])
    inputs = {"input_ids": torch.tensor([[2, 7, 8, 9, 3]]), "attention_mask": torch.ones(1, 5, dtype=torch.int64)}
    with torch.inference_mode():
        torch.testing.assert_close(
            ordinary.eval()(**inputs).logits, load(shallow)(**inputs).logits, rtol=1e-5, atol=1e-5
        )
    report = json.loads((shallow / "report.json").read_text())
    assert report["pruned"]["parameters"] == ordinary.num_parameters() < whole.num_parameters()


def test_its_plan_gives_the_same_forms_again(shallow: Path, checkpoint: Path, data: Path, tmp_path: Path) -> None:
    command("apply", shallow, checkpoint, "--data", data, "--output", tmp_path / "again")
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == ["model", "plan.json", "stock"]
    assert read_plan_file(tmp_path / "again") == read_plan_file(shallow)
    command(
        "apply", shallow, checkpoint, "--data", data, "--output", tmp_path / "one", "--forms", "compact", "--upto", 1
    )
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["model", "plan.json"]
    assert read_plan_file(tmp_path / "one").plan.dropped == (2,)
    command("export", shallow, "--data", data, "--output", tmp_path / "out", "--forms", "stock")
    weights = (shallow / "stock" / "model.safetensors").read_bytes()
    for other in ("again", "out"):
        assert (tmp_path / other / "stock" / "model.safetensors").read_bytes() == weights
