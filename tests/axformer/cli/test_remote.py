"""The command line on a hub, served on this machine: a checkpoint and data by reference."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.loopback import Answer, Loopback
from tests.tiny_models import tiny_rows, write_rows

pytestmark = pytest.mark.slow
COMMIT = "c" * 40
JSON = {"Content-Type": "application/json"}


class Hub:
    """The few routes of a hub that a download takes: one model and one data set at one commit."""

    def __init__(self, model: dict[str, bytes], rows: bytes) -> None:
        self.files = {"/api/models/org/tiny": model, "/api/datasets/org/rows": {"data.jsonl": rows}}

    def __call__(self, method: str, target: str, headers: dict[str, str]) -> Answer:
        path = target.partition("?")[0]
        for prefix, files in self.files.items():
            if path.startswith(f"{prefix}/tree/"):
                listed = [
                    {"type": "file", "path": name, "size": len(body), "oid": COMMIT} for name, body in files.items()
                ]
                return Answer(200, JSON, json.dumps(listed).encode())
            if path == prefix or path.startswith(f"{prefix}/revision/"):
                found = {"id": prefix.partition("/org/")[2], "sha": COMMIT, "siblings": []}
                return Answer(200, JSON, json.dumps(found).encode())
            name = path.rpartition("/")[2]
            if path.startswith(f"{prefix.removeprefix('/api').removeprefix('/models')}/resolve/") and name in files:
                return Answer(200, {"X-Repo-Commit": COMMIT, "ETag": f'"{name}"'}, files[name])
        return Answer(404, {"X-Error-Code": "RepoNotFound"})


CODE = """
import json, sys
from axformer.cli.main import app
for arguments in json.loads(sys.argv[1]):
    try:
        app(arguments, prog_name="axformer")
    except SystemExit as ended:
        print("status", ended.code)
"""
"""Runs one command after another."""


def prune(hub: str, home: Path, *inputs: tuple[str, ...]) -> "subprocess.CompletedProcess[str]":
    """Run ``prune`` once for each checkpoint with its data and further options, all in one fresh Python."""
    options = ["--output", str(home / "out"), "--preset", "published", "--forms", "compact"]
    options += ["--set", "order=explicit", "--set", 'explicit_order=["layer.0.ffn"]']
    commands = [["prune", checkpoint, "--data", data, *options, *others] for checkpoint, data, *others in inputs]
    environment = os.environ | {"HF_ENDPOINT": hub, "HF_HOME": str(home / "hub"), "HF_HUB_DISABLE_XET": "1"}
    command = [sys.executable, "-c", CODE, json.dumps(commands)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def refusals(hub: str, home: Path, *inputs: tuple[str, ...]) -> list[str]:
    """The one line that each is refused with."""
    ran = prune(hub, home, *inputs)
    assert ran.stdout.split("\n") == ["status 2"] * len(inputs) + [""], ran.stderr
    lines = ran.stderr.splitlines()
    assert len(lines) == len(inputs), ran.stderr
    assert all(line.startswith("error: ") for line in lines)
    return lines


def test_checkpoint_and_data_come_from_a_hub_and_more_data_from_a_web_server(tmp_path: Path, checkpoint: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", tiny_rows(20)).read_bytes()
    test = write_rows(tmp_path / "test.jsonl", tiny_rows(24)).read_bytes()
    files = {path.name: path.read_bytes() for path in checkpoint.iterdir()} | {"evil.bin": b"pickle"}
    with Loopback(Hub(files, rows)) as hub, Loopback(lambda method, target, headers: Answer(200, {}, test)) as server:
        others = ("--test", f"{server.url}/test.jsonl?signature=1")
        process = prune(hub.url, tmp_path, ("hf://org/tiny", "hf://datasets/org/rows/data.jsonl", *others))
        assert "status 0" in process.stdout, process.stderr
        data = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))["data"]
        assert (data["validation"]["rows"], data["test"]["rows"]) == (20, 24)
        assert hub.count("/org/tiny/resolve/" + COMMIT + "/evil.bin") == 0


def test_what_a_hub_does_not_have_is_one_line(tmp_path: Path, checkpoint: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", tiny_rows(20)).read_bytes()
    with Loopback(Hub({}, rows)) as hub:
        model, data = refusals(
            hub.url,
            tmp_path,
            ("hf://org/none", "hf://datasets/org/rows/data.jsonl"),
            (str(checkpoint), "hf://datasets/org/none/data.jsonl"),
        )
    assert "checkpoint 'hf://org/none' cannot be fetched from the hub: " in model
    assert "data file 'hf://datasets/org/none/data.jsonl' does not exist" in data


def test_a_hub_that_is_down_is_one_line(tmp_path: Path, checkpoint: Path, data: Path) -> None:
    nowhere = "http://127.0.0.1:1"
    asked = ("hf://org/tiny", str(data)), (str(checkpoint), "hf://datasets/org/rows/data.jsonl")
    assert len(refusals(nowhere, tmp_path, *asked)) == len(asked)
