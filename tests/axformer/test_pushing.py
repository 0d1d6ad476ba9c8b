"""Results in a repository of the model hub: one commit, a layout that loaders know, and nobody's rows."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from axformer.cli.main import app
from axformer.errors import InputError, NotTakenError, PlanError
from axformer.pushing import arranged, push
from tests.loopback import Loopback
from tests.model_hub import TOKEN, Hub

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")  # of the hub's library
FILES = {
    "README.md": b"---\nlicense: mit\n---\n# card",
    "report.json": b"{}",
    "run.json": b"{}",
    "model/config.json": b'{"a": 1}',
    "model/model.safetensors": b"\0" * 1000,
    "hub/README.md": b"# of hub alone",
    "hub/config.json": b'{"a": 2}',
    "hub/onnx/model.onnx": b"graph",
}
ROWS = {"answers.json": b"{}", "needed.jsonl": b"{}", "labels.jsonl": b"{}", ".cache/x": b"x", "model/.hidden": b"x"}
PUSHED = {
    **{name: FILES[name] for name in FILES if not name.startswith("hub/")},
    "hub/README.md": FILES["hub/README.md"],
    "config.json": FILES["hub/config.json"],
    "onnx/model.onnx": FILES["hub/onnx/model.onnx"],
}


@pytest.fixture
def hub() -> Iterator[Hub]:
    made = Hub()
    with Loopback(made) as made.server:
        yield made


@pytest.fixture
def result(tmp_path: Path) -> Path:
    for name, content in (FILES | ROWS).items():
        path = tmp_path / "result" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "result"


def address(hub: Hub) -> str:
    assert hub.server is not None
    return hub.server.url


@pytest.mark.parametrize("name", ["org/name", "hf://org/name", "hf://org/name@candidate"])
def test_a_result_goes_in_one_commit_with_hub_at_the_top_and_without_rows(hub: Hub, result: Path, name: str) -> None:
    commit = push(result, name, token=TOKEN, endpoint=address(hub))
    assert commit == f"{address(hub)}/org/name/commit/{'c' * 40}"
    assert hub.commits == [PUSHED]
    assert [(asked["name"], asked["visibility"]) for asked in hub.created] == [("name", "private")]
    assert hub.server is not None
    branch = "candidate" if "@" in name else "main"
    assert hub.server.count(f"/api/models/org/name/commit/{branch}") == 1


def test_the_command_takes_the_token_and_the_address_that_the_hub_s_library_takes(
    hub: Hub, result: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address(hub))  # HF_ENDPOINT, which is read on import
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    done = CliRunner().invoke(app, ["push", str(result), "hf://org/name", "--public"])
    assert (done.exit_code, done.stdout) == (0, f"{address(hub)}/org/name/commit/{'c' * 40}\n"), done.output
    assert [asked["visibility"] for asked in hub.created] == ["public"]
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    refused = CliRunner().invoke(app, ["push", str(result), "org/name"])
    assert refused.exit_code == 1
    assert "failed: the hub does not take 'org/name' with this token (status 401)" in refused.stderr
    assert len(hub.commits) == 1


@pytest.mark.parametrize(("status", "retryable"), [(403, False), (429, True), (500, True), (503, True)])
@pytest.mark.parametrize("path", ["/api/repos/create", "/api/models/org/name/commit"])
def test_what_the_hub_does_not_take_is_said(hub: Hub, result: Path, path: str, status: int, retryable: bool) -> None:
    hub.broken[path] = status
    with pytest.raises(NotTakenError, match=f"status {status}") as caught:
        push(result, "org/name", token=TOKEN, endpoint=address(hub))
    assert caught.value.retryable is retryable
    assert hub.commits == []


def test_what_is_no_result_and_no_name_is_refused_before_anything_is_sent(hub: Hub, result: Path) -> None:
    with pytest.raises(PlanError, match="is a part of a result; give the directory above"):
        push(result / "model", "org/name", token=TOKEN, endpoint=address(hub))
    for name in ("datasets/org/name", "a b/c", ""):
        with pytest.raises(InputError, match="names no repository; write organisation/name"):
            push(result, name, token=TOKEN, endpoint=address(hub))
    assert hub.server is not None
    assert hub.server.requests == []


@pytest.mark.parametrize(
    ("names", "places"),
    [
        (["a.json", "model/config.json", "hub/config.json"], ["a.json", "model/config.json", "config.json"]),
        (["a.json", "model/config.json", "hub/x"], ["a.json", "config.json", "hub/x"]),
        (["README.md", "hub/README.md", "hub/config.json"], ["README.md", "hub/README.md", "config.json"]),
        (["hub/README.md", "hub/config.json"], ["README.md", "config.json"]),
        (["analysis.json"], ["analysis.json"]),
    ],
)
def test_no_two_files_get_one_place(names: list[str], places: list[str]) -> None:
    assert list(arranged(names).values()) == places
