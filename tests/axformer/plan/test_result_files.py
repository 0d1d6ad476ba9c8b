"""Which directory is meant where another was given: each command that takes a result tells it."""

from pathlib import Path

import pytest

from axformer.errors import PlanError
from axformer.plan.path import read_trace_beside
from axformer.plan.plan import read_plan_file
from axformer.plan.result_files import read_result


@pytest.fixture
def result(tmp_path: Path) -> Path:
    made = tmp_path / "results" / "one"
    (made / "model").mkdir(parents=True)
    (made / "model" / "config.json").write_text("{}")
    for name in ("plan.json", "trace.jsonl", "report.json"):
        (made / name).write_text(f"the {name}")
    return made


@pytest.mark.parametrize("name", ["plan.json", "trace.jsonl", "report.json"])
def test_another_directory_is_told_with_the_one_to_give(result: Path, name: str) -> None:
    assert read_result(result, name) == read_result(result / name, name) == f"the {name}"
    (result / "archive.tar.gz").write_bytes(b"\x1f\x8b\x08\xff")
    (result.parent / "ckpt").mkdir()
    (result.parent / "ckpt" / "config.json").write_text("{}")
    for given, message in {
        result / "model": f"is a part of a result; give the directory above, {result}",
        result.parent: f"holds results in directories of their own; give one, such as {result}",
        result.parent / "ckpt": f"is a model and not the result of a run: there is no {name} in it",
        result.parent / "nowhere": "does not exist; give the directory that axformer prune wrote",
        result / "archive.tar.gz": f"is not text; give {name}, or the directory that axformer prune wrote, unpacked",
    }.items():
        with pytest.raises(PlanError) as caught:
            read_result(given, name)
        assert f"'{given}' {message}" in str(caught.value)


def test_readers_of_plans_and_traces_tell_it(result: Path) -> None:
    for read in (read_plan_file, read_trace_beside):
        with pytest.raises(PlanError, match="give the directory above"):
            read(result / "model")
