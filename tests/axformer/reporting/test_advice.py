"""The advice and the outcome in a whole report, of real runs."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from axformer.cli.deploying import Required
from axformer.cli.failing import EXIT_MISSED, EXIT_NOT_MET
from axformer.cli.main import app
from axformer.config import make_config
from axformer.data.columns import DataSource
from axformer.errors import ConfigError
from axformer.run import PruningRun
from axformer.wire.report import Report
from axformer.wire.run import read_run
from axformer.wire.verdicts import Standing
from store.summaries import outcome_of, summary_of
from tests.runs import open_run
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_rows, write_rows

HALF = {"method": "compress", "target_speedup": 1.3, "budgets": [0.8, 0.2], "within_points": None, "confirm": 0.0}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    files = tmp_path_factory.mktemp("rows")
    return {
        name: str(write_rows(files / f"{name}.jsonl", tiny_rows(rows, seed=seed)))
        for name, rows, seed in (("validation", 40, 0), ("test", 60, 9))
    }


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory, data: dict[str, str]) -> Report:
    """A run that reached its size with a model that was trained for nothing of the kind, in all forms."""
    checkpoint = save_tiny_checkpoint(tmp_path_factory.mktemp("shallow"), tiny_config(layers=1))
    run = open_run(
        *(checkpoint, DataSource(data["validation"])),
        test=DataSource(data["test"]),
        config=make_config("smallest", HALF | {"accept_poor_model": True}),
    )
    list(run.trials())
    return Report.model_validate(run.publish(tmp_path_factory.mktemp("out") / "result", ("onnx", "onnx_int8")))


@pytest.mark.slow
def test_every_form_is_judged_by_held_out_rows_and_the_untouched_model_is_there_in_each_runtime(
    reached: Report,
) -> None:
    assert reached.judged is not None
    assert (reached.judged.data, reached.judged.rows, reached.judged.points) == ("test", 60, 5.0)
    assert [form.name for form in reached.before_forms] == ["onnx", "onnx_int8"]
    for form in (*reached.before_forms, *reached.forms):
        assert form.judgement is not None
        assert form.cost is not None
        assert form.cost.changed is not None
        assert form.classes_answered is not None
        times, ends = form.speed[0].times, form.speed[0].times_interval
        assert times is not None
        assert ends is not None
        assert ends[0] <= times <= ends[1]
    same = reached.before_forms[0]
    assert same.cost is not None
    assert same.cost.changed == 0, "the untouched model in ONNX answers as it does in PyTorch"


def test_one_measurement_gives_all_speeds_of_a_report(reached: Report) -> None:
    compact = next(form for form in reached.forms if form.name == "compact")
    assert reached.base.latency_ms == reached.base_form.speed[0].p50_ms
    assert reached.pruned.latency_ms == compact.speed[0].p50_ms
    assert reached.latency == {
        "batch": 1,
        "tokens": round(reached.base_form.speed[0].tokens),
        "repeats": reached.base_form.speed[0].repeats,
    }


def test_a_target_that_a_useless_model_reached_is_said_first(reached: Report) -> None:
    assert reached.target is not None
    assert reached.target.reached
    compact = next(form for form in reached.forms if form.name == "compact")
    assert compact.judgement is not None
    useless = compact.judgement.standing in (Standing.GUESSING, Standing.WORSE, Standing.FEWER_CLASSES)
    assert (reached.target.usable is False) == useless
    assert reached.target.sentence.startswith("Reached, not usable: ") == useless
    outcome = outcome_of(summary_of(reached.model_dump(mode="json")))
    assert outcome == ("not_usable" if useless else "done")


def test_a_form_is_certified_for_the_points_that_it_is_judged_by(
    checkpoint: Path, data: dict[str, str], tmp_path: Path
) -> None:
    """Few rows show a fall below 90 points, and none below one."""
    knobs = {"within_points": 90.0, "confirm": 0.5, "budgets": [0.9], "table_rows": 16, "accept_poor_model": True}
    asked = {"checkpoint": str(checkpoint), "validation": data["validation"], "preset": "smallest", "config": knobs}
    run = PruningRun.open(read_run(asked | {"at_most": 1.0}))
    list(run.trials())
    report = Report.model_validate(run.publish(tmp_path / "out"))
    assert report.certificate is not None
    assert report.judged is not None
    assert (report.certificate.points, report.judged.points) == (90.0, 1.0)
    (compact,) = [form for form in report.forms if form.name == "compact"]
    assert compact.p_value is not None
    assert compact.p_value > 0.05
    assert compact.judgement is not None
    assert not compact.judgement.is_certified


def advice(**changes: Any) -> dict[str, Any]:
    return {"form": "onnx_int8", "certified": False, "times": [1.4, 1.5, 1.6], "change": [-0.01, 0.0, 0.01]} | changes


@pytest.mark.parametrize(
    ("required", "changes", "unmet"),
    [
        ("certified,times>=1.3,points<=1", {"certified": True}, None),
        ("certified", {}, "the form onnx_int8 is not certified"),
        ("times>=1.45", {}, "the form onnx_int8 is not shown to be 1.45 times as fast"),
        ("points<=0.5", {}, "the form onnx_int8 is not shown to have lost at most 0.5 points"),
        ("points<=0.5", {"change": None}, "the form onnx_int8 is not shown to have lost at most 0.5 points"),
        ("times>=1", {"form": None}, "no form is advised"),
        ("", {"form": None}, None),
    ],
)
def test_what_is_required_is_held_against_the_ends_of_intervals(
    required: str, changes: dict[str, Any], unmet: str | None
) -> None:
    assert Required.parse(required).unmet(advice(**changes)) == unmet


@pytest.mark.parametrize("wrong", ["times>1.5", "certificate", "points<=one"])
def test_what_cannot_be_required_is_refused_before_the_run(wrong: str) -> None:
    with pytest.raises(ConfigError, match="write for example certified,"):
        Required.parse(f"certified,{wrong}")


@pytest.mark.slow
def test_a_nightly_run_ends_with_an_exit_code_of_its_own(
    checkpoint: Path, data: dict[str, str], tmp_path: Path
) -> None:
    words = ["prune", str(checkpoint), "--data", data["validation"], "--test", data["test"], "--forms", "compact"]
    knobs = [f"--set={name}={json.dumps(value)}" for name, value in HALF.items() if name != "method"]
    asked = [*words, "--method", "compress", "--accept-poor-model", *knobs]
    ran = CliRunner().invoke(app, [*asked, "--output", str(tmp_path / "a"), "--require", "certified"])
    assert ran.exit_code == EXIT_NOT_MET, ran.output
    report = json.loads((tmp_path / "a" / "report.json").read_text())
    assert report["advice"]["form"] is None or not report["advice"]["certified"]
    again = CliRunner().invoke(app, [*asked, "--output", str(tmp_path / "b")])
    assert again.exit_code == (EXIT_MISSED if report["target"]["usable"] is False else 0)
