"""Training, pruning and the table, each by the program that does it for all checkpoints, on a tiny one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from axformer.reporting.speed import QUICK
from benchmarks import forms_speed, forms_table
from benchmarks.checkpoints import CHECKPOINTS, Checkpoint, checkpoint_named
from benchmarks.passes import pass_command, run_pass
from benchmarks.results_table import row_of, tables_of
from benchmarks.rows import Row, write_rows
from benchmarks.sets.catalog import SETS
from benchmarks.tasks.registry import TASKS
from benchmarks.train_checkpoints import make
from tests.tiny_models import save_tiny_checkpoint

TINY = Checkpoint(
    "cola", "minilm", "classification", "tiny", ("matthews",), max_length=16, task_name="linguistic_acceptability"
)
ROWS = [Row(f"word{index % 2} word{2 + index % 50}", "01"[index % 2]) for index in range(40)]
REPORT = {
    "base": {
        "validation": {"loss": 0.5},
        "test": {"loss": 0.6, "f1_macro": 0.1, "matthews_correlation": 0.25},
        "test_intervals": {"matthews_correlation": [0.2, 0.3]},
        "parameters": 12345,
        "encoder_parameters": 11000,
        "latency_ms": 10.126,
    },
    "pruned": {
        "validation": {"loss": 0.4},
        "test": {"loss": 0.7, "f1_macro": 0.2, "matthews_correlation": 0.35},
        "test_intervals": {"matthews_correlation": [0.3, 0.4]},
        "parameters": 2345,
        "encoder_parameters": 1000,
        "latency_ms": 9.0,
    },
    "comparison": {
        "test": {
            "differences": {"matthews_correlation": {"value": 0.1, "interval": [-0.05, 0.2]}},
            "mcnemar": {"gained": 5, "lost": 2, "p_value": 0.4531},
        }
    },
    "removed": ["layer.2.ffn", "layer.1.attention.head.3", "layer.1.ffn.neurons.0:4", "layer.0.attention.head.0"],
    "hard_attention": [0, 2],
    "data": {"validation": {"rows": 1301}, "test": {"rows": 1043}},
}


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    """One tiny set."""
    for part in ("train", "validation", "test"):
        write_rows(tmp_path / "sets" / "tiny" / f"{part}.jsonl", ROWS)
    return tmp_path / "sets"


@pytest.mark.slow
def test_a_pass_runs_once_and_its_report_becomes_a_row(tmp_path, sets):
    home, output = save_tiny_checkpoint(tmp_path / "checkpoint"), tmp_path / "results" / TINY.name
    command = pass_command(TINY, home, sets, output, "published")
    assert run_pass(command, home, output) == "done"
    report = json.loads((output / "report.json").read_text())
    assert report["config"]["helped_reference"] == "original"
    assert report["config"]["task_name"] == "linguistic_acceptability"
    base, compact = forms_table.rows_of(TINY, report)
    assert (base[1], compact[0], compact[1]) == ("base", "", "compact")
    assert base[6] == base[8] == "1.00x"
    assert len(base) == len(compact) == len(forms_table.COLUMNS)
    assert report["config"]["max_length"] == TINY.max_length
    speed = forms_speed.measure(output, home, sets / "tiny" / "validation.jsonl", QUICK)
    (output / forms_speed.SPEED_FILE).write_text(json.dumps(speed))
    measured = forms_table.report_in(output)
    assert [(cell["batch"], cell["length"]) for cell in measured["forms"][0]["speed"]] == [(1, None), (32, None)]
    assert measured["base_form"] | {"speed": []} == report["base_form"] | {"speed": []}
    assert run_pass(command, home, output) == "is there"
    went, held_out = (table.splitlines() for table in tables_of(tmp_path / "results").split("\n\n"))
    for header, _, row in (went, held_out):
        assert header.count("|") == row.count("|")
    assert f"{report['base']['parameters']:,} → {report['pruned']['parameters']:,}" in went[2]
    assert f"{report['base']['test']['loss']:.4f} → {report['pruned']['test']['loss']:.4f}" in held_out[2]


@pytest.mark.slow
def test_a_pass_that_fails_says_why_and_leaves_nothing(tmp_path, sets):
    home, output = save_tiny_checkpoint(tmp_path / "checkpoint"), tmp_path / "results" / "tiny"
    command = pass_command(replace(TINY, data="gone"), home, sets, output, "paper")
    assert run_pass(command, home, output).startswith("FAILED: error: data file")
    assert not output.exists()


def test_a_pass_waits_for_its_checkpoint(tmp_path):
    assert run_pass([], tmp_path / "gone", tmp_path / "out") == f"waits, there is no checkpoint {tmp_path / 'gone'}"


@pytest.mark.slow
def test_a_checkpoint_is_trained_and_measured_once(tmp_path, sets):
    small = Checkpoint("small", "distilbert", "classification", "tiny", ("accuracy",), epochs=1, max_length=16)
    assert make(small, sets, tmp_path / "out", threads=1, bfloat16=False)
    figures = json.loads((tmp_path / "out" / "small.json").read_text())
    assert set(figures) == {"loss", "accuracy", "matthews"}
    written = (tmp_path / "out" / "small" / "model.safetensors").stat().st_mtime_ns
    assert make(small, sets, tmp_path / "out", threads=1, bfloat16=False)
    assert (tmp_path / "out" / "small" / "model.safetensors").stat().st_mtime_ns == written


@pytest.mark.slow
def test_a_checkpoint_that_cannot_be_trained_leaves_no_directory_but_its_log(tmp_path):
    broken = Checkpoint("broken", "distilbert", "classification", "gone", ("accuracy",))
    assert not make(broken, tmp_path, tmp_path / "out", threads=1, bfloat16=False)
    assert not (tmp_path / "out" / "broken").exists()
    assert "gone/train.jsonl" in (tmp_path / "out" / "broken.log").read_text()


def test_a_row_tells_what_the_report_does():
    assert row_of(checkpoint_named("cola"), REPORT) == (
        *("minilm", "classification", "cola, 1,301 and 1,043", "1 FFN, 2 heads, 1 neuron group", "0, 2"),
        *(
            "12,345 → 2,345",
            "11,000 → 1,000",
            "10.13 → 9.00",
            "0.5000 → 0.4000",
            "0.6000 → 0.7000",
            "matthews correlation",
        ),
        *("0.2500 [0.2000, 0.3000]", "0.3500 [0.3000, 0.4000]", "+0.1000 [-0.0500, +0.2000]", "0.453 (+5 −2)"),
    )


def test_a_directory_without_passes_is_no_table(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no finished pass"):
        tables_of(tmp_path)


def test_every_checkpoint_has_a_task_a_set_and_a_name_of_its_own():
    assert len({checkpoint.name for checkpoint in CHECKPOINTS}) == len(CHECKPOINTS)
    assert {checkpoint.task for checkpoint in CHECKPOINTS} == set(TASKS)
    assert {checkpoint.data for checkpoint in CHECKPOINTS} == set(SETS)
