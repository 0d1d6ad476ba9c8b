"""The forms of a finished model: all that were asked for and can be made, checked, and nothing of those that cannot."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification
from typer.testing import CliRunner

from axformer.cli.main import app
from axformer.compact import compact
from axformer.config import PassConfig
from axformer.data.dataset import DataSource
from axformer.errors import ArtifactError
from axformer.forms import make
from axformer.forms.form import Form, NotMade
from axformer.forms.kinds import KINDS
from axformer.forms.make import Finished, make_forms
from axformer.plan import Plan, read_plan_file
from axformer.run import PruningRun
from tests.family_cases import Case, checkpoint_of, data_of, some_plan
from tests.tiny_models import save_tiny_checkpoint

BERT = Case("bert", "classification")


def soft(plan: Plan) -> Plan:
    return Plan(layers=tuple(layer.model_copy(update={"hard_attention": None}) for layer in plan.layers))


def finished(case: Case, plan: Plan) -> Finished:
    checkpoint = checkpoint_of(case)
    model = compact(checkpoint.model, checkpoint.architecture, plan)
    return Finished(checkpoint, plan, model, data_of(case).samples)


def test_what_cannot_be_made_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    case, forms = Case("albert", "classification"), ["compact", "zeroed"]
    small, zeroed = make_forms(finished(case, soft(some_plan(1))), forms, tmp_path)
    assert isinstance(small, Form)
    assert small.bytes == sum(file.stat().st_size for file in (tmp_path / "model").glob("*.safetensors"))
    assert isinstance(zeroed, NotMade)
    assert "share their weights" in zeroed.reason
    assert not (tmp_path / "zeroed").exists()


def test_a_form_that_computes_something_else_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = finished(BERT, soft(some_plan(2)))
    monkeypatch.setitem(make._WRITERS, "zeroed", lambda _, result: make._write_zeroed(other, result))  # type: ignore[index]
    (form,) = make_forms(finished(BERT, soft(some_plan(1))), ["zeroed"], tmp_path)
    assert isinstance(form, NotMade)
    assert re.match(r"form 'zeroed': its logits differ by .* it was not published", form.reason)
    assert not (tmp_path / "zeroed").exists()


def test_a_compact_form_that_computes_something_else_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = finished(BERT, soft(some_plan(2)))
    monkeypatch.setitem(make._WRITERS, "compact", lambda _, result: make._write_compact(other, result))  # type: ignore[index]
    with pytest.raises(ArtifactError, match=r"form 'compact': its logits differ by"):
        make_forms(finished(BERT, soft(some_plan(1))), ["compact"], tmp_path)


def test_what_was_trained_after_its_pass_has_no_zeroed_form(tmp_path: Path) -> None:
    (form,) = make_forms(replace(finished(BERT, soft(some_plan(1))), is_trained=True), ["zeroed"], tmp_path)
    assert isinstance(form, NotMade)
    assert "trained after its pass" in form.reason


def report_of(directory: Path) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads((directory / "report.json").read_text())
    return found


def test_a_result_and_the_same_by_its_plan(tmp_path: Path, data: Path) -> None:
    checkpoint = save_tiny_checkpoint(tmp_path / "checkpoint")
    run = PruningRun.open(checkpoint, DataSource(str(data)), config=PassConfig(hard_attention=False))
    assert list(run.trials())
    run.publish(tmp_path / "result", KINDS)
    forms = {form["name"]: form for form in report_of(tmp_path / "result")["forms"]}
    assert list(forms) == list(KINDS)
    for name, form in forms.items():
        assert form["made"]
        assert form["bytes"] > 0
        assert form["max_logit_difference"] <= KINDS[name].tolerance
        assert form["validation"]["accuracy"] >= 0
    arguments = ["apply", str(tmp_path / "result"), str(checkpoint), "--data", str(data), "--forms", "compact,zeroed"]
    again = CliRunner().invoke(app, [*arguments, "--output", str(tmp_path / "again")])
    assert again.exit_code == 0, again.output
    assert read_plan_file(tmp_path / "again") == read_plan_file(tmp_path / "result")
    for name in ("model/model.safetensors", "zeroed/model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "result" / name).read_bytes()
    stock = AutoModelForSequenceClassification.from_pretrained(tmp_path / "again" / "zeroed").eval()
    inputs = {"input_ids": torch.tensor([[2, 7, 8, 9, 3]]), "attention_mask": torch.ones(1, 5, dtype=torch.int64)}
    with torch.inference_mode():
        torch.testing.assert_close(stock(**inputs).logits, run.compact_model()(**inputs).logits, rtol=1e-5, atol=1e-5)
    other = save_tiny_checkpoint(tmp_path / "other", seed=1)
    refused = CliRunner().invoke(app, [*arguments[:2], str(other), *arguments[3:], "--output", str(tmp_path / "none")])
    assert refused.exit_code == 2
    assert "say --other-weights" in refused.stderr
    assert not (tmp_path / "none").exists()
    allowed = [*arguments[:2], str(other), *arguments[3:], "--output", str(tmp_path / "others"), "--other-weights"]
    assert CliRunner().invoke(app, allowed).exit_code == 0
    unknown = CliRunner().invoke(app, [*arguments[:-1], "tiny", "--output", str(tmp_path / "none")])
    assert (unknown.exit_code, "'tiny' is no form; there are compact, zeroed" in unknown.stderr) == (2, True)
