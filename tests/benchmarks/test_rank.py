"""The benchmark of ranked pruning: its cells, two of them on a tiny model, and its document."""

import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.checkpoints import Checkpoint
from benchmarks.finetune import BASE
from benchmarks.rank import grid
from benchmarks.rank.cell import measure
from benchmarks.rank.document import DOCUMENT, document_of
from benchmarks.rank.grid import CURVES, ORDERS, WAYS, Cell, cells
from benchmarks.rank.pictures import write_pictures
from benchmarks.rank.reading import RESULTS, read_cells
from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows


def test_every_cell_has_a_name_of_its_own() -> None:
    names = [cell.name for cell in cells()]
    assert len(set(names)) == len(names)
    assert not WAYS.keys() & CURVES.keys()
    assert [cell.name for cell in cells(["stsb-minilm-s0-*"])] == [
        f"stsb-minilm-s0-{way}" for way in (*WAYS, *CURVES, *ORDERS)
    ]
    with pytest.raises(ValueError, match="no cell is called 'stsc"):
        cells(["stsc-*"])


def test_the_document_is_what_the_cells_give() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document_of(read_cells(RESULTS))
    names = {cell.name for cell in cells()}
    assert {one["cell"] for one in read_cells(RESULTS)} <= names


def test_the_pictures_are_what_the_cells_give(tmp_path: Path) -> None:
    write_pictures(read_cells(RESULTS), tmp_path)
    shown = re.findall(r"\(images/(.+)\)", DOCUMENT.read_text(encoding="utf-8"))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(shown)
    for name in shown:
        assert (DOCUMENT.parent / "images" / name).read_text(encoding="utf-8") == (tmp_path / name).read_text("utf-8")


def _with_points(way: str, seed: int, points: list[tuple[float, float]]) -> dict[str, Any]:
    """A cell with these models: times fewer operations, and accuracy on held-out rows."""
    told = [
        {"estimated_speedup": speed, "test": {"accuracy": value}, "kept": not index}
        for index, (speed, value) in enumerate(points)
    ]
    about = {"cell": f"rte-{seed}-{way}", "data": "rte", "model": BASE, "way": way, "seed": seed, "metric": "accuracy"}
    return {
        **about,
        "points": told,
        "certificate": {"rows": 10 + seed, "passed": seed, "order": "path"},
        "seconds": 60.0,
    }


def test_ways_are_compared_at_the_same_number_of_operations() -> None:
    found = [
        _with_points("l1", 0, [(1.0, 0.8), (1.249, 0.7), (1.5, 0.6)]),
        _with_points("l1", 1, [(1.0, 0.9), (1.3, 0.7), (2.5, 0.6)]),
        _with_points("pass", 0, [(1.0, 0.8), (1.01, 0.8)]),
    ]
    document = document_of(found)
    assert "| rte | L1 | 2 | -15.00 ± 7.07 | -25.00 ± 7.07 | -30.00 | – |" in document
    assert "| rte | the pass (`robust`) | 1 | –" not in document, "a way without fast models is left out"
    assert "A smaller model was certified in 1 of 3 runs: 10 or 11 confirming rows seldom" in document


def test_the_document_tells_the_best_from_the_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_tiny_checkpoint(tmp_path / "checkpoint")
    (tmp_path / "sets" / "tiny").mkdir(parents=True)
    for seed, part in enumerate(("train", "validation", "test")):
        write_rows(tmp_path / "sets" / "tiny" / f"{part}.jsonl", tiny_rows(40, seed=seed))
    tiny = Checkpoint("tiny", BASE, "classification", "tiny", ("accuracy",))
    quick = {"step": 0.3, "until": 0.9, "accept_poor_model": True}
    for ways, name in (
        (grid.WAYS, "taylor-trained"),
        (grid.WAYS, "l1"),
        (grid.CURVES, "heads-l1"),
        (grid.ORDERS, "order-importance"),
    ):
        more = {name: quick[name] for name in (quick if ways is grid.WAYS else ("accept_poor_model",))}
        monkeypatch.setitem(ways, name, grid.replace(ways[name], knobs={**ways[name].knobs, **more}))  # type: ignore[arg-type]
    found = [
        measure(Cell(tiny, way), tmp_path / "checkpoint", tmp_path / "sets", tmp_path / way)
        for way in ("l1", "taylor-trained", "heads-l1", "order-importance")
    ]
    for content in found[:2]:
        assert len(content["points"]) == content["trials"] == 4
        assert sum(point["kept"] for point in content["points"]) == 1
        assert content["certificate"]["points"] == 1.0
    assert found[0]["points"][1]["test"] != found[1]["points"][1]["test"], "one is trained after each step"
    monkeypatch.setattr("benchmarks.rank.document.SETS", ("tiny",))
    monkeypatch.setattr("benchmarks.rank.document.CURVE_SETS", ("tiny",))
    document = document_of(found)
    best = 100 * max(point["test"]["accuracy"] for point in found[0]["points"][1:])
    kept = next(100 * point["test"]["accuracy"] for point in found[0]["points"] if point["kept"])
    row = next(line.split(" | ") for line in document.splitlines() if line.startswith("| tiny | L1"))
    assert (row[4], row[6]) == (f"{best:.2f}", f"{kept:.2f}")
    first, last = (found[2]["points"][index]["test"]["accuracy"] for index in (0, 9))
    (curve,) = [line for line in document.splitlines() if line.startswith("| tiny | minilm | l1")]
    assert curve.endswith(f" {last / first:.2f} |")
    assert "| tiny | least important block first | 1 |" in document
