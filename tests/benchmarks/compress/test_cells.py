"""Everything of a cell comes from one run, and is measured once."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from axformer.config.compress import CompressConfig
from axformer.reporting.speed import Effort
from benchmarks import kept
from benchmarks.checkpoints import Checkpoint
from benchmarks.compress import latency, measure
from benchmarks.compress.__main__ import EXPERIMENT
from benchmarks.compress.cell import row_files
from benchmarks.compress.grid import BUDGETS, COMPRESS, POINTS, SEEDS, VARIANTS, Cell, cells
from benchmarks.compress.measure import config_of
from benchmarks.rows import Row
from benchmarks.running import Place
from benchmarks.sets.catalog import SETS
from benchmarks.sets.parts import Parts
from tests.tiny_models import save_tiny_checkpoint, tiny_config

ROWS = [Row(f"word{index % 2} word{2 + index % 50} word{index % 7}", "01"[index % 2]) for index in range(60)]
TINY = Checkpoint("tiny-s1", "minilm", "classification", "tiny", ("accuracy",), max_length=16, seed=1)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A home whose checkpoints were trained before, and a catalog with one tiny set."""
    monkeypatch.setattr(kept, "SETS", {"tiny": lambda _: Parts(ROWS, ROWS, ROWS)})
    home = tmp_path / "home"
    for name in (TINY.name, "tiny-s0"):
        save_tiny_checkpoint(home / "checkpoints" / name, tiny_config(layers=2))
        (home / "checkpoints" / f"{name}.json").write_text("{}")
    return Place(tmp_path, home, tmp_path / "cells", threads=1, bfloat16=False)


def test_cells_have_names_of_their_own_and_one_seed_of_all_sets_comes_first() -> None:
    everything = cells()
    assert len({one.name for one in everything}) == len(everything)
    assert {one.checkpoint.data for one in everything} <= set(SETS)
    assert {one.checkpoint.seed for one in everything} == set(SEEDS)
    assert {one.variant for one in everything} == set(VARIANTS)
    first = [one for one in everything if one.checkpoint.seed == SEEDS[0]]
    assert everything[: len(first)] == first
    assert [one.name for one in cells(["rte-*"])] == [f"rte-minilm-s{seed}-compress" for seed in SEEDS]
    with pytest.raises(ValueError, match="no cell is called 'sst'"):
        cells(["sst"])


def test_every_variant_is_a_run_that_can_be_asked_for() -> None:
    for variant in VARIANTS.values():
        config = config_of(TINY, variant)
        assert config.budgets == BUDGETS
        assert config.table_rows == CompressConfig().table_rows


def test_rows_are_drawn_by_a_fixed_seed_and_as_many_as_there_are(place: Place) -> None:
    kept.prepare_set("tiny", place.source, place.home / "sets")
    files = row_files("tiny", place.home / "sets", place.home / "drawn")
    assert files.calibrate.read_text() == (place.home / "sets" / "tiny" / "train.jsonl").read_text()
    assert row_files("tiny", place.home / "sets", place.home / "drawn") == files


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_cell_is_measured_once(place: Place, variant: str) -> None:
    cell = Cell(TINY, variant)
    assert EXPERIMENT.run(cell, place) == "done"
    file = place.file(cell)
    content = json.loads(file.read_text())
    base, *points = content["points"]
    assert (content["seed"], content["variant"], content["metric"]) == (1, variant, "accuracy")
    assert content["rows"] == {"deciding": 36, "confirming": 24, "calibration": 60, "test": 60}
    assert (base["share"], base["change"]["value"], base["change"]["interval"]) == (1.0, 0.0, [0.0, 0.0])
    assert [point["budget"] for point in points] == list(BUDGETS)
    assert all(point["share"] <= point["budget"] + 1e-9 for point in points)
    assert all(
        base["metric"] + point["change"]["value"] == pytest.approx(point["test"]["accuracy"]) for point in points
    )
    assert [one["points"] for one in content["certified"]] == list(POINTS)
    assert content["environment"]["threads"] == content["threads"]
    assert "latency" not in content
    written = file.stat().st_mtime_ns
    assert EXPERIMENT.run(cell, place) == "is there"
    assert file.stat().st_mtime_ns == written
    file.write_text(json.dumps(content | {"revision": content["revision"] - 1}))
    assert not EXPERIMENT.has(cell, place)


@pytest.mark.slow
def test_latency_is_measured_for_one_seed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "BUDGETS", (0.8, 0.35))
    monkeypatch.setattr(latency, "EFFORT", Effort(least=2, most=2, seconds=1.0, warm_ups=1))
    cell = Cell(replace(TINY, name="tiny-s0", seed=0), COMPRESS)
    assert EXPERIMENT.run(cell, place) == "done"
    found = json.loads(place.file(cell).read_text())["latency"]
    budgets = ["0.8", "0.35"]
    for workload in found["workloads"]:
        assert list(workload["onnx"]) == ["untouched", *budgets]
        assert list(workload["pytorch"]) == ["untouched", "compact, nothing removed", *budgets]
    assert [workload["batch"] for workload in found["workloads"]] == [1, 32]
