"""What the demo makes of its results: their loss measured anew, one picture, and which file to deploy."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from axformer.config import make_config
from axformer.data.reading import read_rows as read_data
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.dataset import prepare
from axformer.plan.plan import Plan
from benchmarks.demo_result import Delivered, advice, chart_of, loss_of
from benchmarks.rows import Row, read_rows
from tests.axformer.reporting.earlier import form, report
from tests.plain import PlainEvaluator
from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows

SLOWER = Delivered("no-worse", Path("var/one"), report(form("compact", 9.0, 0.85, (-0.01, 0.01))))
FASTER = Delivered(
    "within-points=2",
    Path("var/two"),
    report(form("compact", 6.0, 0.84, (-0.02, 0.001)), form("onnx_int8", 2.0, 0.84, (-0.02, 0.001)), points=2.0),
)
WORSE = Delivered("speedup=2", Path("var/three"), report(form("compact", 1.0, 0.5, (-0.4, -0.3))))


def test_the_fastest_form_of_all_results_that_is_as_good_is_advised_with_its_place() -> None:
    assert advice([SLOWER, FASTER, WORSE]) == (
        "Deploy var/two/onnx_int8/ (ONNX int8): 5.0 times as fast with one input, held-out accuracy 84.00 (before 85.00)."
    )


def test_where_no_form_is_faster_and_as_good_the_model_is_kept() -> None:
    assert advice([WORSE]).endswith("keep your model.")


def test_every_form_of_every_result_is_in_the_picture() -> None:
    text = chart_of([SLOWER, FASTER])
    ElementTree.fromstring(text)
    assert "no-worse, PyTorch 85.00, between 84.00 and 86.00, 1.11 times as fast" in text
    assert "within-points=2, ONNX int8 84.00, between 83.00 and 85.10, 5.00 times as fast" in text


def test_the_loss_is_measured_with_transformers_alone_as_the_report_measures_it(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.jsonl", tiny_rows(150, seed=1))
    checkpoint = load_checkpoint(str(save_tiny_checkpoint(tmp_path / "model")), "cpu")
    samples = prepare(read_data(str(tmp_path / "rows.jsonl")), checkpoint, make_config("paper", {})).samples
    evaluator = PlainEvaluator(checkpoint.model, checkpoint.architecture, checkpoint.task, samples)
    names = checkpoint.model.config.id2label
    rows = [replace(row, label=names[int(row.label)]) for row in read_rows(tmp_path / "rows.jsonl", Row)]
    expected = evaluator.losses(Plan.full(checkpoint.dimensions)).mean().item()
    assert loss_of(tmp_path / "model", rows, 64) == pytest.approx(expected, rel=1e-5)
