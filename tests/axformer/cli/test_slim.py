"""The shortest command with rows: a model as it is, then a path of smaller ones, each in ONNX int8."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from axformer.cli.main import app
from axformer.cli.slim import BUDGETS
from axformer.forms.kinds import HUB, KINDS, ONNX_INT8
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_rows, write_rows


@pytest.mark.slow
@pytest.mark.parametrize("labelled", [True, False])
def test_a_checkpoint_with_rows_brings_its_int8_and_a_path_in_it(labelled: bool, tmp_path: Path) -> None:
    checkpoint = save_tiny_checkpoint(tmp_path / "mine", tiny_config(layers=1))
    rows = [row if labelled else {"text": row["text"]} for row in tiny_rows(120)]
    data = write_rows(tmp_path / "rows.jsonl", rows)
    done = CliRunner().invoke(app, [str(checkpoint), str(data), "--within-points", "40", "--accept-poor-model"])
    assert done.exit_code == 0, done.output
    out = tmp_path / "mine-slim"
    assert KINDS[ONNX_INT8].is_in(out / "as-it-is")
    report = json.loads((out / "smaller" / "report.json").read_bytes())
    deployed = {point["seq"]: point["deployed"] for point in report["path"]}
    assert len(deployed) <= 1 + len(BUDGETS)
    assert all(one["form"] == ONNX_INT8 and one["bytes"] > 0 for one in deployed.values())
    assert {one["data"] for one in deployed.values()} == {"confirming" if labelled else "unlabelled"}
    first, path, answer = (done.output.index(text) for text in ("PyTorch, as it is", "The path in ONNX int8", "In "))
    assert first < path < answer
    assert ("axformer label" in done.output) is not labelled
    assert (out / "as-it-is" / HUB / "config.json").is_file()


@pytest.mark.slow
def test_what_is_there_stays_when_the_path_cannot_be_made(tmp_path: Path) -> None:
    checkpoint = save_tiny_checkpoint(tmp_path / "mine", tiny_config(layers=1))
    data = write_rows(tmp_path / "rows.jsonl", tiny_rows(2))
    done = CliRunner().invoke(app, [str(checkpoint), str(data)])
    assert done.exit_code == 2, done.output
    assert KINDS[ONNX_INT8].is_in(tmp_path / "mine-slim" / "as-it-is")
    assert not (tmp_path / "mine-slim" / "smaller").exists()
