"""``axformer bench`` measures every form of a result, and says in one line what is wrong with another."""

import json
import shutil
from pathlib import Path

import pytest
from transformers import DistilBertConfig, DistilBertForSequenceClassification
from typer.testing import CliRunner

from axformer.cli.main import app
from axformer.forms.kinds import COMPACT, KINDS, ONNX, STOCK, ZEROED
from axformer.reporting import speed
from axformer.reporting.bench import BenchReport, compact_checkpoint, made_up
from axformer.reporting.speed import Effort
from axformer.reporting.workloads import BATCHES, LENGTHS
from tests.tiny_models import WORDS, save_tiny_checkpoint, tiny_config, tiny_tokenizer

pytestmark = pytest.mark.slow
"""Every form is made, ONNX among them."""


@pytest.fixture(autouse=True)
def _little_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "THOROUGH", Effort(least=2, most=2, seconds=1.0, warm_ups=1))


def bench(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["bench", *map(str, arguments)])
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_a_result_is_measured_against_its_checkpoint(every_form: Path, checkpoint: Path, data: Path) -> None:
    shown = bench(every_form, "--checkpoint", checkpoint, "--data", data, "--json")
    report = BenchReport.model_validate_json(shown)
    assert report.base is not None
    assert [form.name for form in report.forms] == [name for name in KINDS if name != STOCK]
    told = json.loads((every_form / "report.json").read_text(encoding="utf-8"))
    assert report.base.validation == pytest.approx(told["base"]["validation"], abs=1e-5)
    made = [form for form in told["forms"] if form["made"]]
    for form, published in zip(report.forms, made, strict=True):
        assert (form.name, form.bytes) == (published["name"], published["bytes"])
        assert form.validation == pytest.approx(published["validation"], abs=1e-5)
    compact, zeroed, onnx, half, int8 = report.forms
    assert compact.max_logit_difference is None, "the others are compared with it"
    for form, most in ((zeroed, 1e-5), (onnx, 1e-4), (half, 0.1), (int8, 10.0)):
        assert form.max_logit_difference is not None
        assert form.max_logit_difference < most
        assert form.change is not None
    assert (half.speed, half.peak_bytes) == ([], None), "it is for a GPU"
    for form in (report.base, compact, zeroed, onnx, int8):
        assert {(cell.batch, cell.length) for cell in form.speed} == {
            (batch, length) for batch in BATCHES for length in (*LENGTHS, None)
        }
        assert {cell.repeats for cell in form.speed} == {2}
        assert form.peak_bytes is not None
    assert report.data is not None
    assert report.data.sha256 == told["data"]["validation"]["sha256"]


def test_without_data_inputs_are_made_up_and_a_table_is_shown(every_form: Path) -> None:
    shown = bench(every_form)
    for words in ("What the forms are worth", "compact", "zeroed", "weight files, MB", "32 × 128 tokens"):
        assert words in shown
    assert "own lengths" not in shown
    compact = compact_checkpoint(every_form, "cpu")
    encoded = made_up(compact)
    special = set(compact.tokenizer.all_special_ids)
    assert all(0 <= token < len(compact.tokenizer) for row in encoded.features["input_ids"] for token in row)
    assert not special.intersection(token for row in encoded.features["input_ids"] for token in row)
    assert len(encoded.features["input_ids"]) == max(BATCHES)


def copy_of(result: Path, place: Path) -> Path:
    return Path(shutil.copytree(result, place / "copy"))


@pytest.mark.parametrize("name", [COMPACT, ZEROED, ONNX])
def test_a_damaged_form_is_named(every_form: Path, tmp_path: Path, name: str) -> None:
    copy = copy_of(every_form, tmp_path)
    (weights,) = (copy / KINDS[name].directory).glob(KINDS[name].files)
    weights.write_bytes(weights.read_bytes()[:-100])
    assert f"its form '{name}' does not load" in refused(copy)


def test_what_is_no_result_is_refused(tmp_path: Path, checkpoint: Path, data: Path, result: Path) -> None:
    assert f"'{tmp_path}' is no result of a run: there is no model in it" in refused(tmp_path)
    copy = copy_of(result, tmp_path)
    (copy / "plan.json").unlink()
    assert "there is no plan.json in it" in refused(copy)
    shutil.rmtree(copy / "model")
    (copy / "model").mkdir()
    assert "its form 'compact' does not load" in refused(copy)
    assert "data file 'nowhere.jsonl' does not exist" in refused(result, "--data", "nowhere.jsonl")
    assert "checkpoint 'nowhere' is not a directory" in refused(result, "--checkpoint", "nowhere")


def test_a_checkpoint_of_another_kind_is_refused(result: Path, tmp_path: Path) -> None:
    deeper = save_tiny_checkpoint(tmp_path / "deeper", tiny_config(layers=5))
    assert "the plan has 3 layers, the model has 5" in refused(result, "--checkpoint", deeper)
    other = tmp_path / "other"
    config = DistilBertConfig(vocab_size=len(WORDS) + 5, dim=32, hidden_dim=48, n_layers=3, n_heads=4)
    DistilBertForSequenceClassification(config).save_pretrained(other)
    tiny_tokenizer().save_pretrained(other)
    assert "is a distilbert DistilBertForSequenceClassification, the result was made from a bert" in refused(
        result, "--checkpoint", other
    )


def refused(*arguments: object) -> str:
    """The one line that a bench says where it is refused."""
    done = CliRunner().invoke(app, ["bench", *map(str, arguments)])
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    return done.stderr
