"""Experiment trackers are told what a result says, in stores and files of their own."""

import json
import os
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import axformer
from axformer.cli.main import app
from axformer.errors import InputError
from axformer.tracking import tracked
from tests.tiny_models import tiny_config, tiny_model, tiny_rows, tiny_tokenizer

KNOBS = {"method": "compress", "confirm": 0.0, "within_points": None, "budgets": [0.5], "accept_poor_model": True}
ARTIFACTS = {"README.md", "report.json", "report.html", "run.json", "plan.json"}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("results") / "smaller"
    model, test = tiny_model(tiny_config(layers=1)), tiny_rows(20, seed=1)
    axformer.prune(
        *(model, tiny_tokenizer(), tiny_rows(30)),
        test=test,
        preset="paper",
        forms=["compact"],
        output=directory,
        **KNOBS,
    )
    return directory


@pytest.fixture(scope="module")
def report(result: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((result / "report.json").read_bytes())
    return content


def logged(directory: Path, *arguments: object, **environment: str) -> str:
    """What the command prints, in a process of its own."""
    done = subprocess.run(
        [Path(sys.executable).with_name("axformer"), "log", *map(str, arguments)],
        cwd=directory,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


def test_a_tracker_is_told_of_every_point_form_and_knob(result: Path, report: dict[str, Any]) -> None:
    told = tracked(result)
    assert told.name == "smaller"
    assert told.params["validation.uri"] == "memory"
    assert {name.removeprefix("config.") for name in told.params if name.startswith("config.")} == set(report["config"])
    assert [point["path/operations"] for point in told.path] == [point["operations"] for point in report["path"]]
    assert told.path[0]["path/deciding/accuracy"] == report["path"][0]["deciding"]["accuracy"]
    assert told.figures["compact/accuracy"] == report["pruned"]["test"]["accuracy"]
    assert told.figures["base/bytes"] == report["base_form"]["bytes"]
    assert told.tags["axformer.advice"].startswith(report["advice"]["sentence"])
    assert told.tags["axformer.certified"] == "false"
    assert {file.name for file in told.files} == ARTIFACTS


def test_what_is_no_result_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is no result of a run: there is no report\.json in it"):
        tracked(tmp_path)
    (tmp_path / "report.json").write_text("{}")
    with pytest.raises(InputError, match="is no result of a run: it has no 'config'"):
        tracked(tmp_path)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ([], "nobody is to be told; give --mlflow, --wandb or both"),
        (["--wandb", "--uri", "http://x"], "--uri http://x is MLflow's; give --mlflow too"),
        (["--wandb"], "wandb is not installed; pip install 'axformer[wandb]'"),
        (["--mlflow"], "mlflow is not installed; pip install 'axformer[mlflow]'"),
    ],
)
def test_what_is_missing_is_one_line(
    result: Path, asked: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mlflow", "wandb"):
        monkeypatch.setitem(sys.modules, name, None)  # as Python marks what cannot be imported
    done = CliRunner().invoke(app, ["log", str(result), *asked])
    assert (done.exit_code, done.stderr) == (2, f"error: {said}\n")


@pytest.mark.slow
def test_mlflow_keeps_it(result: Path, report: dict[str, Any], tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/store.db"
    telling = logged(tmp_path, result, "--mlflow", "--uri", uri, MLFLOW_DISABLE_TELEMETRY="true")
    run_id = telling.removeprefix("MLflow run ")
    store = sqlite3.connect(tmp_path / "store.db")
    try:
        steps = store.execute("SELECT value FROM metrics WHERE key = 'path/operations' ORDER BY step").fetchall()
        params, tags = (dict(store.execute(f"SELECT key, value FROM {table}")) for table in ("params", "tags"))
        runs = store.execute("SELECT run_uuid, name, status, artifact_uri FROM runs").fetchall()
    finally:
        store.close()
    assert [value for (value,) in steps] == [point["operations"] for point in report["path"]]
    assert params["config.method"] == "compress"
    assert tags["mlflow.note.content"] == tags["axformer.advice"]
    ((found, name, status, place),) = runs
    assert (found, name, status) == (run_id, "smaller", "FINISHED")
    assert {path.name for path in (tmp_path / place).iterdir()} == ARTIFACTS


@pytest.mark.slow
def test_wandb_keeps_it(result: Path, report: dict[str, Any], tmp_path: Path) -> None:
    told = logged(tmp_path, result, "--wandb", WANDB_MODE="offline", WANDB_DIR=str(tmp_path), WANDB_SILENT="true")
    (file,) = Path(told.removeprefix("W&B run ")).glob("*.wandb")
    from wandb.proto.wandb_internal_pb2 import Record

    records = [Record.FromString(content) for content in records_in(file)]
    steps = [value_of(record.history.item, "path/operations") for record in records if record.HasField("history")]
    assert steps == [point["operations"] for point in report["path"]]
    (run,) = [record.run for record in records if record.HasField("run")]
    assert (run.project, run.display_name, list(run.tags)) == ("axformer", "smaller", ["not certified", "form: none"])
    assert value_of(run.config.update, "config.method") == "compress"
    (artifact,) = [record.artifact for record in records if record.HasField("artifact")]
    assert {entry.path for entry in artifact.manifest.contents} == ARTIFACTS
    summaries = [item for record in records if record.HasField("summary") for item in record.summary.update]
    assert value_of(summaries, "compact/accuracy") == report["pruned"]["test"]["accuracy"]


def value_of(items: Any, name: str) -> Any:
    """The value of an item, which is named by a key or by parts of one."""
    (found,) = [item.value_json for item in items if (item.key or "/".join(item.nested_key)) == name]
    return json.loads(found)


def records_in(file: Path) -> Iterator[bytes]:
    """The records of a log of LevelDB's form: 7 bytes of header, then blocks of 32 KiB."""
    content, place, whole = file.read_bytes(), 7, b""
    while place < len(content):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        _, length, kind = struct.unpack_from("<IHB", content, place)
        whole += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield whole
            whole = b""
