"""What a report and its card say of the forms of a result."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import ModelCard
from jsonschema import Draft202012Validator

from axformer.apply import apply_plan
from axformer.artifact import load
from axformer.config import PassConfig
from axformer.data.columns import DataSource
from axformer.data.reading import read_rows
from axformer.export import export
from axformer.forms.form import Form, NotMade, Written
from axformer.forms.fresh import FreshPython, program_of
from axformer.forms.kinds import BASE, COMPACT, HUB, KINDS, ONNX, STOCK, ZEROED
from axformer.forms.memory import peak_bytes
from axformer.forms.stock import load as load_whole
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.dataset import prepare
from axformer.intake.rebuilt import check_inputs
from axformer.methods.decisions import Decisions
from axformer.methods.targets import Targets
from axformer.model.operations import Operations
from axformer.model.parameters import ParameterCount
from axformer.plan.plan import Plan, read_plan_file
from axformer.plan.trial import Trial
from axformer.reporting.card import write_card
from axformer.reporting.card_forms import loading_of
from axformer.reporting.measure import make_report, measure_both
from axformer.wire.references import shown_name
from axformer.wire.report import Report
from tests.forked import forked_interpreter
from tests.schemas import schema_text
from tests.tiny_models import tiny_rows, write_rows

pytestmark = pytest.mark.slow
"""Every form is made, ONNX among them."""

SCHEMA = Path(__file__).parents[3] / "docs" / "report.schema.json"
REASON = "its graph has a shape that cannot be written"


@pytest.fixture(scope="module")
def made(result: Path, checkpoint: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, str]:
    """A report of two forms and one that was not made, measured on held-out data too, with its card."""
    whole = load_checkpoint(checkpoint)
    file = read_plan_file(result)
    plan = file.plan
    validation = prepare(read_rows(str(data)), whole, PassConfig(max_length=10))
    rows = write_rows(tmp_path_factory.mktemp("held_out") / "test.jsonl", tiny_rows(40, seed=7))
    held_out = prepare(read_rows(str(rows)), whole, PassConfig(max_length=10))
    inputs = check_inputs(validation.samples.encoded, whole.tokenizer, "cpu")
    forms: list[Form | NotMade] = []
    for name in (COMPACT, ZEROED):
        home = result / KINDS[name].directory
        fresh = FreshPython(program_of(name, whole.head.auto_class.__name__)).run(home, "cpu", inputs)
        forms.append(Form(name, KINDS[name].load(home, "cpu"), KINDS[name].bytes_in(home), fresh))
    trace = [Trial.model_validate_json(line) for line in (result / "trace.jsonl").read_text().splitlines()]
    full = Plan.full(whole.dimensions)
    operations = Operations(whole.model, whole.architecture, pooled=True, lengths=validation.samples.lengths)
    parameters = ParameterCount(whole.model, whole.architecture)
    targets = Targets(
        *(PassConfig(), full, parameters.left, operations.left), *(parameters.encoder, operations.encoder)
    )
    decisions, small = Decisions(PassConfig(), whole.dimensions, targets), load(result)
    decisions.trace.extend(trace)
    assert decisions.plan == plan
    both = measure_both(whole, small, validation, {"test": held_out})
    made = Written([*forms, NotMade(ONNX, REASON)])
    report = make_report(
        *(whole, decisions, small, made, validation, {"test": held_out}, PassConfig(max_length=10), both)
    )
    return report, write_card(report, file, whole.dimensions, loading_of(whole.task, whole.head))


def test_every_form_is_measured_like_the_untouched_model(made: tuple[Report, str], result: Path) -> None:
    report, _ = made
    base, (compact, zeroed, onnx) = report.base_form, report.forms
    assert [(form.name, form.made) for form in report.forms] == [(COMPACT, True), (ZEROED, True), (ONNX, False)]
    assert (onnx.reason, onnx.bytes, onnx.speed) == (REASON, None, [])
    cells = [[(cell.batch, cell.length) for cell in form.speed] for form in (base, compact, zeroed)]
    assert cells[0] == cells[1] == cells[2]
    assert cells[0] == [(1, None), (32, None)]
    assert (base.load_seconds, base.idle_bytes, base.peak_bytes) == (None, None, None)
    for form in (compact, zeroed):
        assert form.load_seconds is not None
        assert form.load_seconds > 0
        assert form.idle_bytes is not None
        assert form.peak_bytes is not None
        assert 0 < form.idle_bytes <= form.peak_bytes
    assert (base.directory, compact.directory, zeroed.directory) == (None, "model", "zeroed")
    assert compact.bytes == report.pruned.bytes == (result / "model" / "model.safetensors").stat().st_size
    assert compact.bytes < (zeroed.bytes or 0)
    assert (base.bytes, base.validation) == (report.base.bytes, report.base.validation)
    assert compact.validation == report.pruned.validation


def test_the_estimated_speed_up_is_that_of_the_counted_operations(made: tuple[Report, str]) -> None:
    report, card = made
    assert report.estimated_speedup == report.base.operations / report.pruned.operations > 1
    assert f"| operations, millions | {report.base.operations / 1e6:,.1f} |" in card


def test_forms_are_compared_with_the_compact_one(made: tuple[Report, str]) -> None:
    report, _ = made
    base, (compact, zeroed, _) = report.base_form, report.forms
    assert (base.max_logit_difference, base.change, compact.change) == (None, None, None)
    assert compact.max_logit_difference == 0
    assert zeroed.max_logit_difference is not None
    assert zeroed.max_logit_difference < 1e-5
    assert zeroed.validation == pytest.approx(compact.validation, abs=1e-5)
    assert zeroed.change is not None
    assert zeroed.change.differences["loss"].value == pytest.approx(0, abs=1e-5)
    assert zeroed.change.mcnemar is not None
    assert (zeroed.change.mcnemar.gained, zeroed.change.mcnemar.lost) == (0, 0)


def test_every_form_is_measured_on_held_out_data_and_compared_with_the_untouched_model(
    made: tuple[Report, str],
) -> None:
    report, card = made
    base, (compact, zeroed, onnx) = report.base_form, report.forms
    assert (base.test, base.test_change, onnx.test) == (report.base.test, None, None)
    assert compact.test == report.pruned.test
    told = report.comparison["test"]
    assert compact.test_change == told.model_copy(update={"calibrated": None, "temperature": None, "tempered": None})
    assert told.tempered is not None
    assert f"| held-out calibration error, logits / {told.temperature:.3g} |  | {told.calibrated:.4f} |" in card
    assert report.comparison["validation"].temperature is None, "the rows that it was fitted on"
    assert zeroed.test == pytest.approx(compact.test, abs=1e-5)
    assert zeroed.test_change is not None
    assert zeroed.test_change.differences["loss"].value == pytest.approx(report.pruned.test["loss"] - base.test["loss"])
    assert f"| before | {100 * base.test['accuracy']:.2f} |" in card


def test_the_card_tells_of_each_form_and_shows_how_it_is_loaded(made: tuple[Report, str]) -> None:
    report, card = made
    rows = {line.split(" | ")[0].strip("| *"): line for line in card.splitlines() if line.startswith("| ")}
    for form in (report.base_form, *report.forms[:2]):
        assert form.bytes is not None
        row = rows["before the pass" if form.name == BASE.name else form.name]
        assert f"{form.bytes / 1e6:.1f}" in row
    assert f"**onnx** was not made: {REASON}." in card
    assert 'model = axformer.load("model")' in card
    assert "import axformer.auto" in card
    assert 'AutoModelForSequenceClassification.from_pretrained("zeroed")' in card
    assert "onnxruntime" not in card
    for text in (report.data["validation"], report.environment["axformer"], report.environment["device"]):
        assert str(getattr(text, "sha256", text)) in card
    assert "`max_length=10`" in card
    assert "![3 layers; " in card
    assert "](plan.svg)" in card


@pytest.mark.parametrize(
    ("title", "alone"),
    [("Compact", False), ("Zeroed, without this package", True), ("ONNX", True), ("ONNX in int8", True)],
)
def test_the_code_for_each_form_runs_as_the_card_has_it(
    title: str, alone: bool, every_form: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = (every_form / "README.md").read_text(encoding="utf-8")
    code = card.partition(f"### {title}\n")[2].partition("```python\n")[2].partition("```")[0]
    ours = "import sys; found = any(name.startswith('axformer') for name in sys.modules)"
    assert code
    (tmp_path / "card.py").write_text(f"{code}{ours}\nassert found is {not alone}\n", encoding="utf-8")
    monkeypatch.chdir(every_form)
    ran = forked_interpreter(["-I", str(tmp_path / "card.py")])
    assert ran.returncode == 0, ran.stderr


def test_the_directory_of_the_graphs_explains_itself_where_it_is_uploaded_alone(
    every_form: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = shutil.copytree(every_form / HUB, tmp_path / "uploaded")
    card = ModelCard.load(hub / "README.md")
    assert (card.data.library_name, card.data.pipeline_tag) == ("onnx", "text-classification")
    assert {result.metric_name for result in card.data.eval_results} == {
        f"accuracy, {name}" for name in ("ONNX", "ONNX fp16", "ONNX int8")
    }
    assert (hub / "run.json").read_bytes() == (every_form / "run.json").read_bytes()
    assert "This directory is `hub/` of a result" in card.text
    assert "](p" not in card.text, "it has no pictures"
    monkeypatch.chdir(hub)
    programs = re.findall(r"```python\n(.*?)```", card.text, re.DOTALL)
    assert len(programs) == 3
    for program in programs:
        (tmp_path / "card.py").write_text(program, encoding="utf-8")
        ran = forked_interpreter(["-I", str(tmp_path / "card.py")])
        assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("way", ["export", "apply"])
def test_graphs_that_are_made_later_say_what_they_are_and_claim_nothing(
    way: str, result: Path, checkpoint: Path, data: Path, tmp_path: Path
) -> None:
    rows, out = DataSource(str(data)), tmp_path / "out"
    if way == "export":
        export(result, rows, out, forms=[STOCK, ONNX])
    else:
        apply_plan(read_plan_file(result), checkpoint, rows, out, forms=[COMPACT, ONNX])
    card = ModelCard.load(out / HUB / "README.md")
    assert card.data.library_name == "onnx"
    assert card.text.startswith(f"# {shown_name(str(result if way == 'export' else checkpoint))} in ONNX\n")
    assert "**Nothing is claimed about accuracy**" in card.text
    assert "on 40 rows" in card.text
    assert "| `onnx/model.onnx` | 0." in card.text
    assert card.text.count("```python") == 1


def test_a_published_report_fits_the_published_schema(every_form: Path) -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text(), (
        "write it again: python -m tests.schemas > docs/report.schema.json"
    )
    validator = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    Draft202012Validator.check_schema(validator.schema)
    report = json.loads((every_form / "report.json").read_text(encoding="utf-8"))
    validator.validate(report)
    assert Report.model_validate(report).model_dump(mode="json") == report
    assert "int8" not in report
    for of_earlier in (None, {"base": {}, "pruned": {}, "comparison": {"validation": None}}):
        earlier = report | {"int8": of_earlier, "config": report["config"] | {"evaluate_in": "int8"}}
        validator.validate(earlier)
        assert Report.model_validate(earlier).config["evaluate_in"] == "int8"
    assert [error.message for error in validator.iter_errors({**report, "format": "axformer-report/1"})]
    assert [error.message for error in validator.iter_errors({**report, "forms": [{"name": "onnx"}]})]


def test_every_figure_of_a_form_is_described() -> None:
    definitions = json.loads(schema_text())["$defs"]
    for name in ("SpeedCell", "FormReport"):
        said = {key for key, field in definitions[name]["properties"].items() if "description" in field}
        assert set(definitions[name]["properties"]) - said <= {"name", "made", "validation_intervals", "test_intervals"}


def test_a_process_tells_its_own_peak_and_not_its_parent_s() -> None:
    held = np.ones(75_000_000)
    code = "from axformer.forms.memory import peak_bytes; print(peak_bytes())"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0 < int(ran.stdout) < peak_bytes() - held.nbytes / 2


def test_a_whole_model_loads_as_its_user_saved_it(checkpoint: Path) -> None:
    model = load_whole(checkpoint, "cpu")
    assert type(model).__name__ == "BertForSequenceClassification"
    assert not model.training
