"""The notebook of the first minute: whole, kept without outputs, and it runs from its first cell to its last."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_models import answered_rows, answering_model, tiny_tokenizer, write_rows

NOTEBOOK = Path(__file__).parents[1] / "docs" / "first_minute.ipynb"


def cells() -> list[dict[str, Any]]:
    content = json.loads(NOTEBOOK.read_text("utf-8"))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    found: list[dict[str, Any]] = content["cells"]
    return found


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell as a notebook does, and give the value of its last expression."""
    if source.startswith("%pip install "):
        return None  # it is installed
    if source.startswith("!"):
        program, *arguments = source.removeprefix("!").format(**names).split()
        ran = [Path(sys.executable).with_name(program), *arguments]
        return subprocess.run(ran, capture_output=True, text=True, check=True).stdout
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, NOTEBOOK.name, "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)


def test_it_is_kept_as_notebooks_are_and_without_outputs() -> None:
    assert {cell["cell_type"] for cell in cells()} == {"code", "markdown"}
    assert len({cell["id"] for cell in cells()}) == len(cells())
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells() if "outputs" in cell)


@pytest.mark.slow
def test_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = answering_model(2)
    model.save_pretrained(tmp_path / "my-checkpoint")
    tiny_tokenizer().save_pretrained(tmp_path / "my-checkpoint")
    rows = answered_rows(model, 160, [0, 1])
    write_rows(tmp_path / "dev.jsonl", rows[:100])
    write_rows(tmp_path / "test.jsonl", rows[100:])
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    shown = {cell["id"]: run_cell("".join(cell["source"]), names) for cell in cells() if cell["cell_type"] == "code"}
    assert "Wrote my-checkpoint-int8/hub/onnx/model_quantized.onnx" in shown["int8"]
    assert "<table>" in shown["result"]._repr_html_()
    before, after = shown["table"]
    assert before.keys() == after.keys() >= {"accuracy", "loss"}
    assert shown["session"][0].shape == (1, 2)
