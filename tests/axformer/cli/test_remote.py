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


def prune(hub: str, home: Path, checkpoint: str, data: str, *others: str) -> "subprocess.CompletedProcess[str]":
    code = "from axformer.cli.main import app; app(prog_name='axformer')"
    arguments = ["prune", checkpoint, "--data", data, "--output", str(home / "out"), "--preset", "published"]
    arguments += ["--set", "order=explicit", "--set", 'explicit_order=["layer.0.ffn"]', *others]
    environment = os.environ | {"HF_ENDPOINT": hub, "HF_HOME": str(home / "hub"), "HF_HUB_DISABLE_XET": "1"}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_checkpoint_and_data_come_from_a_hub_and_more_data_from_a_web_server(tmp_path: Path, checkpoint: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", tiny_rows(20)).read_bytes()
    test = write_rows(tmp_path / "test.jsonl", tiny_rows(24)).read_bytes()
    files = {path.name: path.read_bytes() for path in checkpoint.iterdir()} | {"evil.bin": b"pickle"}
    with Loopback(Hub(files, rows)) as hub, Loopback(lambda method, target, headers: Answer(200, {}, test)) as server:
        others = ("--test", f"{server.url}/test.jsonl?signature=1")
        process = prune(hub.url, tmp_path, "hf://org/tiny", "hf://datasets/org/rows/data.jsonl", *others)
        assert process.returncode == 0, process.stderr
        data = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))["data"]
        assert (data["validation"]["rows"], data["test"]["rows"]) == (20, 24)
        assert hub.count("/org/tiny/resolve/" + COMMIT + "/evil.bin") == 0


def test_what_a_hub_does_not_have_is_one_line(tmp_path: Path, checkpoint: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", tiny_rows(20)).read_bytes()
    with Loopback(Hub({}, rows)) as hub:
        model = prune(hub.url, tmp_path, "hf://org/none", "hf://datasets/org/rows/data.jsonl")
        data = prune(hub.url, tmp_path, str(checkpoint), "hf://datasets/org/none/data.jsonl")
    for process in (model, data):
        assert (process.returncode, process.stderr.count("\n")) == (2, 1), process.stderr
        assert process.stderr.startswith("error: ")
    assert "checkpoint 'hf://org/none' cannot be fetched from the hub: " in model.stderr
    assert "data file 'hf://datasets/org/none/data.jsonl' does not exist" in data.stderr


def test_a_hub_that_is_down_is_one_line(tmp_path: Path, checkpoint: Path, data: Path) -> None:
    nowhere = "http://127.0.0.1:1"
    model = prune(nowhere, tmp_path, "hf://org/tiny", str(data))
    rows = prune(nowhere, tmp_path, str(checkpoint), "hf://datasets/org/rows/data.jsonl")
    for process in (model, rows):
        assert (process.returncode, process.stderr.count("\n")) == (2, 1), process.stderr
        assert process.stderr.startswith("error: ")
