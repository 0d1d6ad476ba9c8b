"""Files of a result are taken as they are; anything else in their place is refused, and nothing outside is read."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from worker.sandbox.delivery import DeliveryError, delivered

MOST_BYTES = 1000


@pytest.fixture
def result(tmp_path: Path) -> Path:
    (tmp_path / "others").write_text("another job's")
    made = tmp_path / "artifact"
    (made / "model").mkdir(parents=True)
    (made / "plan.json").write_text("{}")
    (made / "model" / "model.safetensors").write_bytes(b"weights")
    return made


def test_the_files_of_a_result_are_open_by_name(result: Path) -> None:
    with ExitStack() as files:
        found = delivered(result, files, MOST_BYTES)
        assert {name: file.read() for name, file in found.items()} == {
            "plan.json": b"{}",
            "model/model.safetensors": b"weights",
        }


def test_graphs_lie_one_directory_deeper(result: Path) -> None:
    graphs = result / "hub" / "onnx"
    graphs.mkdir(parents=True)
    (graphs / "model_quantized.onnx").write_bytes(b"graph")
    (result / "hub" / "config.json").write_bytes(b"{}")
    (result / "hub" / "README.md").write_text("# A card")
    with ExitStack() as files:
        found = delivered(result, files, MOST_BYTES)
        assert found["hub/onnx/model_quantized.onnx"].read() == b"graph"
        assert set(found) == {
            *("plan.json", "model/model.safetensors", "hub/config.json", "hub/onnx/model_quantized.onnx"),
            "hub/README.md",
        }


def test_the_modules_of_an_embedder_have_directories_of_their_own(result: Path) -> None:
    (result / "model" / "1_Pooling").mkdir()
    (result / "model" / "2_Dense").mkdir()
    (result / "model" / "2_Dense" / "model.safetensors").write_bytes(b"")
    (result / "model" / "1_Pooling" / "config.json").write_bytes(b"{}")
    with ExitStack() as files:
        assert {"model/1_Pooling/config.json", "model/2_Dense/model.safetensors"} < set(
            delivered(result, files, MOST_BYTES)
        )


def in_hub(at: Path, name: str) -> Path:
    (at / "hub" / "onnx").mkdir(parents=True)
    return at / "hub" / name


def many(result: Path) -> None:
    for number in range(300):
        (result / "model" / f"{number}.json").touch()


@pytest.mark.parametrize(
    "change",
    [
        lambda at: (at / "report.json").symlink_to(at.parent / "others"),
        lambda at: os.link(at.parent / "others", at / "report.json"),
        lambda at: os.mkfifo(at / "report.json"),
        lambda at: (at / "report.json").mkdir(),
        lambda at: (at / "hub").symlink_to(at.parent),
        lambda at: (at / "hub").write_text("x"),
        lambda at: in_hub(at, "other").mkdir(),
        lambda at: in_hub(at, "onnx/run.sh").touch(),
        lambda at: in_hub(at, "onnx/deeper").mkdir(),
        lambda at: in_hub(at, "onnx/model.onnx").symlink_to(at.parent / "others"),
        lambda at: (in_hub(at, "onnx").rmdir(), (at / "hub" / "onnx").symlink_to(at.parent)),
        lambda at: ((at / "model" / "onnx").mkdir(), (at / "model" / "onnx" / "model.onnx").touch()),
        lambda at: (at / "evil").mkdir(),
        lambda at: (at / "evil.json").touch(),
        lambda at: (at / "model" / "run.sh").touch(),
        lambda at: (at / "model" / "README.md").touch(),
        lambda at: (at / "model" / "\x1b[2J.json").touch(),
        lambda at: (at / "model" / "deep").mkdir(),
        lambda at: (at / "model" / "1_Pooling" / "deeper").mkdir(parents=True),
        lambda at: (at / "model" / "1_Pooling").symlink_to(at.parent),
        lambda at: os.truncate(at / "plan.json", MOST_BYTES),
        many,
    ],
    ids=range(22),
)
def test_what_is_no_result_is_refused(result: Path, change: Callable[[Path], object]) -> None:
    change(result)
    with ExitStack() as files, pytest.raises(DeliveryError):
        delivered(result, files, MOST_BYTES)


def test_a_result_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "artifact").symlink_to(tmp_path / "elsewhere")
    for name in ("artifact", "nothing"):
        with ExitStack() as files, pytest.raises(DeliveryError):
            delivered(tmp_path / name, files, MOST_BYTES)
