"""The forms of a finished model: all that were asked for and can be made, checked, and nothing of those that cannot."""

import html
import json
import re
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification
from typer.testing import CliRunner

from axformer.artifact import load
from axformer.cli.main import app
from axformer.data.batches import batched
from axformer.errors import ArtifactError
from axformer.forms import make
from axformer.forms.form import Form, NotMade
from axformer.forms.kinds import KINDS, STOCK
from axformer.forms.make import Finished, make_forms
from axformer.intake.checkpoint import load_checkpoint
from axformer.model.compact import compact
from axformer.plan.plan import Plan, read_plan_file
from tests.family_cases import Case, checkpoint_of, data_of, some_plan
from tests.tiny_families import DIMENSIONS
from tests.tiny_models import save_tiny_checkpoint, tiny_config

BERT = Case("bert", "classification")
RARE = 53
"""A token of some rows."""
KNOBS = (
    "--preset",
    "paper",
    "--set",
    "accept_poor_model=true",
    "--set",
    "max_length=10",
    "--set",
    "attention_top_k=null",
)


def soft(plan: Plan) -> Plan:
    return Plan(layers=tuple(layer.model_copy(update={"hard_attention": None}) for layer in plan.layers))


def one_layer(seed: int) -> Plan:
    """A plan for graphs, since each layer takes seconds to export."""
    return soft(some_plan(seed)).dropping((1, 2, 3))


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


@pytest.mark.slow
def test_what_a_model_says_of_padding_is_not_compared(tmp_path: Path) -> None:
    """A token of padding far behind a text sees no token where layers see their neighbourhood."""
    (form,) = make_forms(
        finished(Case("modernbert", "masked_lm"), soft(some_plan(3)).dropping((2, 3))), ["onnx"], tmp_path
    )
    assert isinstance(form, Form)


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


@pytest.mark.parametrize(
    "scale", [pytest.param(1e-3, marks=pytest.mark.slow), pytest.param(50.0, marks=pytest.mark.slow), 1e6]
)
def test_forms_are_made_whatever_the_size_of_the_outputs(tmp_path: Path, scale: float) -> None:
    """A head that gives prices or milliseconds; a form with other weights is found at every scale."""
    case, plan = Case("bert", "regression"), one_layer(1)
    model = deepcopy(checkpoint_of(case).model)
    with torch.no_grad():
        for parameter in model.classifier.parameters():
            parameter.mul_(scale)
    checkpoint = replace(checkpoint_of(case), model=model)
    scaled = Finished(checkpoint, plan, compact(model, checkpoint.architecture, plan), data_of(case).samples)
    forms = make_forms(scaled, ["compact", "onnx"], tmp_path / "result")
    assert [isinstance(form, Form) for form in forms] == [True] * 2, forms
    wrong = replace(scaled, model=compact(model, checkpoint.architecture, one_layer(2)))
    with pytest.raises(ArtifactError, match="form 'compact': its logits differ by"):
        _with_writer("compact", lambda _, result: make._write_compact(wrong, result), scaled, tmp_path / "wrong")


def _with_writer(name: str, write: Any, finished: Finished, result: Path) -> list[Form | NotMade]:
    """Make the compact form and perhaps others, one of which writes something else."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(make._WRITERS, name, write)  # type: ignore[arg-type]
        return make_forms(finished, {"compact", name}, result)


def test_a_compact_form_that_fails_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = finished(BERT, one_layer(2))
    monkeypatch.setitem(make._WRITERS, "compact", lambda _, result: make._write_compact(other, result))  # type: ignore[index]
    small, graph = make_forms(finished(BERT, one_layer(1)), ["compact", "onnx"], tmp_path)
    assert isinstance(small, NotMade)
    assert small.failed
    assert re.match(r"form 'compact': its logits differ by \d.* \(allowed: \d", small.reason)
    assert isinstance(graph, Form)
    assert [path.name for path in tmp_path.iterdir()] == ["hub"]


@pytest.mark.slow
def test_a_graph_that_fails_is_not_rounded_either(tmp_path: Path) -> None:
    other = finished(BERT, one_layer(2))
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(make._WRITERS, "onnx", lambda _, result: make._write_onnx(other, result))  # type: ignore[arg-type]
        forms = make_forms(finished(BERT, one_layer(1)), ["compact", "onnx", "onnx_int8"], tmp_path)
    assert [(form.name, isinstance(form, NotMade) and form.failed) for form in forms] == [
        ("compact", False),
        ("onnx", True),
        ("onnx_int8", True),
    ]
    assert not (tmp_path / "hub").exists()


def grown(change: Any) -> Finished:
    """A model whose numbers half precision does not hold."""
    model = deepcopy(checkpoint_of(BERT).model)
    with torch.no_grad():
        change(model.bert)
    checkpoint, plan = replace(checkpoint_of(BERT), model=model), Plan.full(DIMENSIONS).dropping((1, 2, 3))
    return Finished(checkpoint, plan, compact(model, checkpoint.architecture, plan), data_of(BERT).samples)


def with_a_large_weight(bert: Any) -> None:
    bert.encoder.layer[0].output.dense.weight[3, 4] = 70_000.0


def with_large_activations(bert: Any) -> None:
    """A norm follows, so float32 says nothing of it."""
    bert.encoder.layer[0].intermediate.dense.bias.fill_(60_000.0)
    bert.encoder.layer[0].intermediate.dense.weight.mul_(40_000.0)


def with_a_large_token(bert: Any) -> None:
    """Only rows with this token overflow; a norm follows, to which the size of the others is all the same."""
    tables = bert.embeddings
    scale = 2_000.0 / tables.word_embeddings.weight.std()
    for table in (tables.word_embeddings, tables.position_embeddings, tables.token_type_embeddings):
        table.weight.mul_(scale)
    tables.word_embeddings.weight[RARE] = 65_000.0


@pytest.mark.parametrize(
    ("change", "failed", "reason"),
    [
        (
            with_a_large_weight,
            False,
            r"half precision, which ends at 65,504: the weight \S+ has a number of size 70,000",
        ),
        (with_large_activations, True, r"its logits are no numbers at \d+ of \d+ places, as where numbers grow"),
    ],
)
def test_what_half_precision_does_not_hold_is_said_and_leaves_nothing(
    change: Any, failed: bool, reason: str, tmp_path: Path
) -> None:
    small, half = make_forms(grown(change), ["compact", "onnx_fp16"], tmp_path)
    assert isinstance(small, Form)
    assert isinstance(half, NotMade)
    assert half.failed == failed
    assert re.search(reason, half.reason), half.reason
    assert not (tmp_path / "hub").exists()


def test_half_precision_is_tried_on_all_rows_that_there_are(tmp_path: Path) -> None:
    """A single token overflows, which only further rows have."""
    model = grown(with_a_large_token)
    encoded = model.samples.encoded
    ids = [[8 if token == RARE else token for token in row] for row in encoded.features["input_ids"]]
    usual = replace(encoded, features={**encoded.features, "input_ids": ids})
    tokenizer = model.checkpoint.tokenizer
    without = batched(usual, tokenizer, batch_tokens=200, device="cpu")
    (made,) = make_forms(replace(model, samples=without), ["onnx_fp16"], tmp_path / "made")
    assert isinstance(made, Form), made.reason
    assert made.fresh is None, "nothing is timed"
    more = replace(model, samples=without, more=[model.samples])
    (failed,) = make_forms(more, ["onnx_fp16"], tmp_path / "failed")
    assert isinstance(failed, NotMade)
    assert "logits that are not numbers; it was not published" in failed.reason


@pytest.mark.slow
def test_a_result_without_its_compact_form_says_so_everywhere(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = save_tiny_checkpoint(tmp_path / "checkpoint", tiny_config(layers=1))
    other = finished(BERT, soft(some_plan(2)))
    monkeypatch.setitem(make._WRITERS, "compact", lambda _, result: make._write_compact(other, result))  # type: ignore[index]
    done = run("prune", checkpoint, "--data", data, "--output", tmp_path / "out", "--forms", "compact,onnx", *KNOBS)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    forms = {form["name"]: form for form in report["forms"]}
    assert (forms["compact"]["made"], forms["compact"]["failed"]) == (False, True)
    assert forms["onnx"]["made"]
    assert report["pruned"]["bytes"] == forms["onnx"]["bytes"]
    assert not (tmp_path / "out" / "model").exists()
    reason = forms["compact"]["reason"]
    assert f"not published: {reason}" in done.output
    assert reason in html.unescape((tmp_path / "out" / "README.md").read_text())


def test_what_was_trained_after_its_pass_has_no_zeroed_form(tmp_path: Path) -> None:
    (form,) = make_forms(replace(finished(BERT, soft(some_plan(1))), is_trained=True), ["zeroed"], tmp_path)
    assert isinstance(form, NotMade)
    assert "that was trained after its pass" in form.reason


@pytest.mark.slow
def test_a_result_tells_of_all_its_forms(every_form: Path) -> None:
    report = json.loads((every_form / "report.json").read_text())
    forms = {form["name"]: form for form in report["forms"]}
    assert list(forms) == list(KINDS)
    assert "a layer has lost its attention block or its FFN block" in forms.pop(STOCK)["reason"]
    for name, form in forms.items():
        assert form["made"], form["reason"]
        assert form["bytes"] == KINDS[name].bytes_in(every_form / form["directory"]) > 0
        assert form["max_logit_difference"] <= KINDS[name].tolerance
        assert bool(form["speed"]) == (form["load_seconds"] is not None) == (not KINDS[name].for_gpu)


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_plan_gives_the_same_forms_again(tmp_path: Path, result: Path, checkpoint: Path, data: Path) -> None:
    again = run(
        "apply", result, checkpoint, "--data", data, "--forms", "compact,zeroed", "--output", tmp_path / "again"
    )
    assert again.exit_code == 0, again.output
    assert read_plan_file(tmp_path / "again") == read_plan_file(result)
    for name in ("model/model.safetensors", "zeroed/model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (result / name).read_bytes()
    stock = AutoModelForSequenceClassification.from_pretrained(tmp_path / "again" / "zeroed").eval()
    inputs = {"input_ids": torch.tensor([[2, 7, 8, 9, 3]]), "attention_mask": torch.ones(1, 5, dtype=torch.int64)}
    with torch.inference_mode():
        torch.testing.assert_close(stock(**inputs).logits, load(result)(**inputs).logits, rtol=1e-5, atol=1e-5)


def test_a_plan_of_other_weights_is_refused_unless_that_is_wanted(tmp_path: Path, result: Path, data: Path) -> None:
    other = save_tiny_checkpoint(tmp_path / "other", seed=1)
    refused = run("apply", result, other, "--data", data, "--output", tmp_path / "none")
    assert refused.exit_code == 2
    assert "say --other-weights" in refused.stderr
    assert not (tmp_path / "none").exists()
    allowed = run("apply", result, other, "--data", data, "--output", tmp_path / "allowed", "--other-weights")
    assert allowed.exit_code == 0, allowed.output
    assert read_plan_file(tmp_path / "allowed").source.sha256 == load_checkpoint(other).sha256


def test_a_plan_of_a_model_of_other_dimensions_is_refused(tmp_path: Path, result: Path, data: Path) -> None:
    larger = save_tiny_checkpoint(tmp_path / "larger", tiny_config(layers=4))
    refused = run("apply", result, larger, "--data", data, "--output", tmp_path / "none", "--other-weights")
    assert refused.exit_code == 2
    assert "the plan has 3 layers, the model has 4" in refused.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_a_result_is_exported_without_its_checkpoint(tmp_path: Path, result: Path, data: Path) -> None:
    done = run("export", result, "--data", data, "--output", tmp_path / "out", "--forms", "onnx_int8", "--json")
    assert done.exit_code == 0, done.output
    made = tmp_path / "out" / "hub"
    assert list((tmp_path / "out").iterdir()) == [made]
    told = {"name": "onnx_int8", "made": True, "directory": str(made), "place": f"{made}/onnx/model_quantized.onnx"}
    told["bytes"] = KINDS["onnx_int8"].bytes_in(made)
    assert json.loads(done.stdout) == [told]
    for arguments, reason in (
        (("export", result, "--forms", "zeroed"), "axformer apply makes all"),
        (("export", result, "--forms", "tiny"), "'tiny' is not a form; there are stock, compact, zeroed"),
        (("export", tmp_path / "nowhere"), "nowhere' does not exist; give the directory that axformer prune wrote"),
    ):
        refused = run(*arguments, "--data", data, "--output", tmp_path / "none")
        assert (refused.exit_code, reason in refused.stderr) == (2, True), refused.stderr
    assert not (tmp_path / "none").exists()
