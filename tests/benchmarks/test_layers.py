"""The benchmark of layer dropping: its cells, one of them on a tiny model, and its document."""

from pathlib import Path

import pytest

from axformer.config.layers import Strategy
from axformer.reporting.speed import Effort
from benchmarks.checkpoints import Checkpoint
from benchmarks.compress import latency, reading
from benchmarks.finetune import BASE
from benchmarks.layers.cell import measure
from benchmarks.layers.document import DOCUMENT, RESULTS, document_of, read_cells
from benchmarks.layers.grid import Cell, cells
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_rows, write_rows


def test_every_cell_has_a_name_of_its_own() -> None:
    names = [cell.name for cell in cells()]
    assert len(set(names)) == len(names)
    assert [cell.name for cell in cells(["cola-minilm-s0-top-*"])] == [
        f"cola-minilm-s0-top-{training}" for training in ("untrained", "plain", "teacher", "short")
    ]
    with pytest.raises(ValueError, match="no cell is called 'colb"):
        cells(["colb-*"])


def test_the_document_is_what_the_cells_give() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document_of(read_cells(RESULTS), reading.read_cells(reading.RESULTS))
    names = {cell.name for cell in cells()}
    assert {one["cell"] for one in read_cells(RESULTS)} <= names


def test_a_cell_drops_one_layer_after_the_other_and_the_document_says_what_that_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latency, "EFFORT", Effort(least=2, most=2, seconds=1.0, warm_ups=1))
    save_tiny_checkpoint(tmp_path / "checkpoint", tiny_config(layers=4))
    (tmp_path / "sets" / "tiny").mkdir(parents=True)
    for seed, part in enumerate(("train", "validation", "test")):
        write_rows(tmp_path / "sets" / "tiny" / f"{part}.jsonl", tiny_rows(12, seed=seed))
    checkpoint = Checkpoint("tiny", BASE, "classification", "tiny", ("accuracy",))
    found = []
    for training in ("short", "untrained"):
        cell = Cell(checkpoint, Strategy.TOP, training)
        found.append(measure(cell, tmp_path / "checkpoint", tmp_path / "sets", tmp_path / "state"))
    for content in found:
        assert [point["dropped"] for point in content["points"]] == [0, 1, 2, 3]
        assert all(set(point["test"]) >= {"loss", "accuracy"} for point in content["points"])
    taught, untrained = (content["points"][0]["test"] for content in found)
    assert taught == pytest.approx(untrained, abs=1e-6)
    assert found[0]["points"][3]["test"] != found[1]["points"][3]["test"]
    document = document_of(found)
    assert "| tiny | 2,000 rows | top | " in document
    assert "| tiny | minilm | 1 of " in document
    first, last = (100 * found[1]["points"][index]["test"]["accuracy"] for index in (0, 3))
    assert f"cut alone | 1 | {first:.2f} |" in document
    assert f"3: {last - first:+.2f} |" in document
