"""``axformer compare`` over results of this machine; over jobs it is tested with the service."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.axformer.cli.test_cli import invoke


def trained_copy(result: Path, copy: Path, **settings: object) -> Path:
    """A result that was trained with these settings."""
    shutil.copytree(result, copy)
    report: dict[str, Any] = json.loads((copy / "report.json").read_text())
    report["finetune"] = {"epochs": 2, "settings": {"epochs": 2, "learning_rate": 0.1} | settings}
    (copy / "report.json").write_text(json.dumps(report))
    return copy


def rows_of(text: str) -> dict[str, list[str]]:
    """The cells of a table by the first of their row."""
    split = [[cell for cell in line.strip().split("  ") if cell] for line in text.splitlines()]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in split if len(cells) > 1}


def test_results_stand_side_by_side_with_what_differs(
    result: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(result, "plain")
    trained_copy(result, Path("one"))
    trained_copy(result, Path("other"), learning_rate=0.2)
    told = invoke("compare", "plain", "one", "other", "--plot", "all.svg")
    assert told.exit_code == 0, told.stderr
    rows, report = rows_of(told.stdout), json.loads((result / "report.json").read_text())
    assert rows["job or result"] == ["plain", "one", "other"]
    assert rows["trained"] == ["–", "2 epochs", "2 epochs"]
    assert rows["learning_rate"] == ["–", "0.1", "0.2"]
    assert rows["trials"] == [str(report["trials"])] * 3
    before, after = (report[side]["parameters"] for side in ("base", "pruned"))
    assert rows["parameters"] == [f"{before:,} → {after:,}"] * 3
    assert "preset" not in rows
    assert "order" not in rows, "it is the same"
    assert "<svg" in Path("all.svg").read_text()
    answered = json.loads(invoke("compare", "plain", "one", "--json").stdout)
    assert [one["result"] for one in answered] == ["plain", "one"]
    assert answered[0]["report"] == report


def test_what_is_no_result_is_named(result: Path, tmp_path: Path) -> None:
    empty, broken = tmp_path / "empty", tmp_path / "broken"
    for directory in (empty, broken):
        directory.mkdir()
    (broken / "report.json").write_text('{"trials": 3}')
    for directory, why in ((empty, "there is no report.json in it"), (broken, "it has no 'config'")):
        refused = invoke("compare", result, directory)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert f"error: '{directory}' is no result of a run: {why}" in refused.stderr
