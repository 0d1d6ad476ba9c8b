"""A result whose model the confirming rows chose: its report, its certificate, and the other models on its path."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from axformer.cli.main import app
from axformer.config import make_config
from axformer.data.columns import DataSource
from axformer.intake.checkpoint import load_checkpoint
from axformer.plan.path import points_of
from axformer.plan.plan import read_plan_file
from axformer.plan.trial import Trial
from axformer.wire.report import Report
from tests.runs import open_run
from tests.tiny_models import tiny_rows, write_rows

KNOBS = {"majority_fraction": 0.2, "neuron_group_size": 12, "attention_top_k": 3, "confirm": 0.4}
ROUNDING = 1e-4
"""Relative; the pass computes parts of what a whole forward pass computes."""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, checkpoint: Path) -> tuple[Path, Report, Path]:
    """A result whose pass was cut short by the rows that confirm, its report, and its data."""
    files = tmp_path_factory.mktemp("files")
    data = write_rows(files / "validation.jsonl", tiny_rows(60))
    test = write_rows(files / "test.jsonl", tiny_rows(20, seed=9))
    for seed in range(10):
        config = make_config("paper", KNOBS | {"seed": seed})
        run = open_run(checkpoint, DataSource(str(data)), test=DataSource(str(test)), config=config)
        list(run.trials())
        confirmed = run.decisions.measured
        if 0 < confirmed.kept < len(confirmed.points) - 1:
            report = run.publish(files / "result")
            return files / "result", Report.model_validate(report), data
    raise AssertionError("no seed cuts the pass short")


def test_the_report_tells_the_path_and_is_of_the_model_that_is_kept(published: tuple[Path, Report, Path]) -> None:
    directory, report, _ = published
    (kept,) = [point for point in report.path if point.kept]
    assert kept.seq < report.path[-1].seq
    for point, measures in ((report.path[0], report.base), (kept, report.pruned)):
        assert point.parameters == measures.parameters
        assert point.operations == measures.operations
        assert point.confirming == pytest.approx(measures.confirming, rel=ROUNDING)
        assert point.test == pytest.approx(measures.test, rel=ROUNDING)
    assert kept.confirming is not None
    assert all(point.confirming and point.confirming["loss"] >= kept.confirming["loss"] for point in report.path)
    assert report.estimated_speedup == kept.estimated_speedup
    latencies = [point.estimated_latency_ms for point in report.path]
    assert latencies == [report.base.latency_ms / point.estimated_speedup for point in report.path]
    accepted = {str(point.element) for point in report.path if 0 < point.seq <= kept.seq}
    assert set(report.removed) <= accepted
    rows = {name: data.rows for name, data in report.data.items() if data is not None}
    assert rows == {"validation": 60, "confirming": 24, "test": 20}
    assert report.finding is not None
    assert report.finding.data == "test"
    for name in ("confirming", "test"):
        assert report.comparison[name] is not None
    for file in ("README.md", "report.html"):
        text = (directory / file).read_text()
        assert "24 of the validation rows did not decide but confirmed" in text
        assert f"{kept.seq} (this model)" in text


def test_a_certificate_is_told_wherever_the_result_is(tmp_path: Path, checkpoint: Path) -> None:
    data = write_rows(tmp_path / "validation.jsonl", tiny_rows(60))
    knobs = KNOBS | {"tolerance": 0.5, "within_points": 40}
    arguments = ["prune", checkpoint, "--data", data, "--output", tmp_path / "result", "--preset", "paper"]
    arguments += ["--forms", "compact"]
    settings = [part for name, value in knobs.items() for part in ("--set", f"{name}={str(value).lower()}")]
    done = CliRunner().invoke(app, [str(one) for one in (*arguments, *settings)])
    assert done.exit_code == 0, done.output
    report = Report.model_validate_json((tmp_path / "result" / "report.json").read_text())
    assert report.certificate is not None
    sentence = report.certificate.sentence
    assert sentence in done.output
    for file in ("README.md", "report.html"):
        text = (tmp_path / "result" / file).read_text()
        assert sentence in text
        assert "certified to have fallen by less than 40 points (an exact test of right" in text
    assert report.certificate.kept == next(point.seq for point in report.path if point.kept)


def test_any_point_can_be_had_from_the_result(
    published: tuple[Path, Report, Path], checkpoint: Path, tmp_path: Path
) -> None:
    directory, report, data = published
    last = report.path[-1]
    arguments = ["apply", directory, checkpoint, "--data", data, "--output", tmp_path / "end", "--upto", last.seq]
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    assert done.exit_code == 0, done.output
    trace = [Trial.model_validate_json(line) for line in (directory / "trace.jsonl").read_text().splitlines()]
    points = points_of(trace, load_checkpoint(checkpoint).dimensions, make_config("paper", KNOBS).attention_kept)
    assert read_plan_file(tmp_path / "end").plan == points[-1].plan
    assert read_plan_file(directory).plan == next(
        one.plan for one, told in zip(points, report.path, strict=True) if told.kept
    )
    assert json.loads((directory / "plan.json").read_text())["config"]["confirm"] == 0.4
