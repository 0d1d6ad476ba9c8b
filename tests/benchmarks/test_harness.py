"""The harness: cells are measured once, within their minutes, and are what their grid asks for."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from axformer.config import make_config
from axformer.config.earlier import REMOVED, of_today
from benchmarks import harness
from benchmarks.__main__ import app
from benchmarks.checkpoints import CHECKPOINTS, Checkpoint, make
from benchmarks.harness import Arm, Cell, CellError, Content, Grid, Place, read_cells
from benchmarks.pages import GRIDS
from benchmarks.prune import by_prune, first_metric, prune_command
from benchmarks.rows import Row
from benchmarks.sets.catalog import SETS
from benchmarks.sets.parts import Parts
from benchmarks.tasks.registry import TASKS
from tests.tiny_models import save_tiny_checkpoint

ROWS = [Row(f"word{index % 2} word{2 + index % 50}", "01"[index % 2]) for index in range(40)]
TINY = Checkpoint("tiny-s0", "minilm", "classification", "tiny", ("accuracy",), max_length=16)
_NOT_KNOBS = {"neuron_groups"}
"""What an earlier version called otherwise."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A home whose checkpoint was trained before, and a catalog with one tiny set."""
    monkeypatch.setattr(harness, "SETS", {"tiny": lambda _: Parts(ROWS, ROWS, ROWS)})
    save_tiny_checkpoint(tmp_path / "home" / "checkpoints" / TINY.name)
    return Place(tmp_path, tmp_path / "home", tmp_path / "cells", rows=30)


def grid_of(measure: harness.Measure, **arms: Arm) -> Grid:
    """A grid with a cell for each arm."""
    return Grid("tiny", arms, [Cell(TINY, arm) for arm in arms], measure)


@pytest.mark.parametrize("name", GRIDS)
def test_cells_have_names_of_their_own_and_arms_that_are_measured(name: str) -> None:
    grid: Grid = GRIDS[name].GRID
    names = [cell.name for cell in grid.cells]
    assert len(set(names)) == len(names)
    assert all(grid.arms[cell.arm].is_measured and cell.checkpoint.data in SETS for cell in grid.cells)
    assert [cell.name for cell in grid.chosen([names[0]])] == [names[0]]
    with pytest.raises(ValueError, match="no cell is called 'none"):
        grid.chosen(["none-*"])


@pytest.mark.parametrize("name", ["evidence", "conditions", "compress", "layers", "rank", "labels"])
def test_every_arm_is_a_run_that_can_be_asked_for(name: str) -> None:
    for arm in (arm for arm in GRIDS[name].GRID.arms.values() if arm.is_measured):
        make_config(arm.preset, arm.knobs)


@pytest.mark.parametrize("name", GRIDS)
def test_cells_that_are_kept_are_of_the_grid(name: str) -> None:
    grid: Grid = GRIDS[name].GRID
    planned = {cell.name: cell for cell in grid.cells}
    for content in read_cells(name):
        about = (content["format"], content["family"], content.get("rows"))
        assert about == (harness.FORMAT, name, None)
        cell = planned.get(content["cell"])
        if cell is None:
            assert not grid.arms[content["arm"]].is_measured
            continue
        checkpoint = cell.checkpoint
        assert (content["data"], content["model"], content["seed"]) == (
            *(checkpoint.data, checkpoint.family, checkpoint.seed),
        )
        if "config" in content.get("report", ()) and "otherwise" not in content:
            config = of_today(content["report"]["config"])
            arm = grid.arms[cell.arm]
            asked = make_config(arm.preset, {**arm.knobs, "seed": checkpoint.seed}).model_dump(mode="json")
            told = (arm.knobs.keys() & config.keys()) - REMOVED.keys() - _NOT_KNOBS
            assert {knob: config[knob] for knob in told} == {knob: asked[knob] for knob in told}, content["cell"]


def test_a_run_says_what_it_is_given(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path / "home")
    for part in ("train", "validation", "test"):
        file = place.sets / "tiny" / f"{part}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f'{{"text": "{index}", "label": "{index % 2}"}}\n' for index in range(40)))
    arm = Arm(
        {"method": "layers", "strategy": "top"},
        parts=("train",),
        finetune={"bf16": True},
        rows={"train": 7, "validation": 20},
    )
    command = prune_command(TINY, arm, place, tmp_path / "model", tmp_path / "out")
    drawn = place.home / "drawn" / "tiny"
    assert {f"--data={drawn / 'validation-20.jsonl'}", f"--train={drawn / 'train-7.jsonl'}"} < set(command)
    assert {f"--test={place.sets / 'tiny' / 'test.jsonl'}", '--set=strategy="top"', "--finetune=bf16=true"} < set(
        command
    )
    labels = [json.loads(line)["label"] for line in (drawn / "validation-20.jsonl").read_text().splitlines()]
    assert (labels.count("0"), labels.count("1")) == (10, 10), "classes stay balanced"
    assert len((drawn / "train-7.jsonl").read_text().splitlines()) == 7
    named = replace(TINY, task_name="entailment")
    assert '--set=order="entailment"' in prune_command(named, Arm(), place, tmp_path, tmp_path)
    assert not any("order" in word for word in prune_command(named, arm, place, tmp_path, tmp_path))


@pytest.mark.slow
def test_a_cell_is_measured_once_by_the_command_and_its_report_is_kept(place: Place) -> None:
    grid = grid_of(by_prune(first_metric), confirm=Arm({"confirm": 0.5}))
    (cell,) = grid.cells
    assert grid.run((), place, minutes=1)
    content = json.loads(grid.file(cell, place).read_text())
    assert (content["cell"], content["rows"], content["metric"]) == ("tiny-s0-confirm", 30, "accuracy")
    assert (content["report"]["config"]["confirm"], content["report"]["data"]["validation"]["rows"]) == (0.5, 30)
    assert not (place.home / "runs" / cell.name).exists(), "models take room"
    assert grid.missing((), place) == []


@pytest.mark.slow
def test_a_cell_that_fails_leaves_no_file_and_stops_no_other(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    grid = grid_of(by_prune(first_metric), lost=Arm({"max_length": 100_000}), kept=Arm())
    assert not grid.run((), place, minutes=5)
    assert [cell.arm for cell in grid.missing((), place)] == ["lost"]
    assert "tiny-s0-lost: FAILED: error: knob max_length=100000" in capsys.readouterr().out


def test_a_cell_that_was_measured_otherwise_is_measured_again_while_there_is_time(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(cell: Cell, _: Arm, __: Place) -> Content:
        if cell.arm == "bad":
            raise CellError("it is bad")
        return {"report": {}}

    grid = grid_of(measure, old=Arm(), bad=Arm(), good=Arm())
    old = grid.file(grid.cells[0], place)
    old.parent.mkdir(parents=True)
    old.write_text('{"otherwise": "in another order"}')
    assert grid.run((), place, minutes=0)
    assert "3 cells are still missing" in capsys.readouterr().out
    assert not grid.run((), place, minutes=1)
    assert [cell.arm for cell in grid.missing((), place)] == ["bad"]
    assert "tiny-s0-bad: FAILED: it is bad" in capsys.readouterr().out
    assert "otherwise" not in json.loads(old.read_text())
    assert grid.run(["*-old"], place, minutes=1, again=True)
    assert "1 of 1 cells are to be measured" in capsys.readouterr().out


def test_the_command_lists_grids_and_refuses_what_there_is_not(tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["list"])
    assert [line.partition(":")[0] for line in told.output.splitlines()] == list(GRIDS)
    for words, complaint in (
        (["none"], "there is no grid"),
        (["rank", "--only", "none-*"], "no cell is called"),
        (["rank", "--device", "cuda"], "measured on the CPU"),
    ):
        refused = CliRunner().invoke(app, ["run", *words, "--source", str(tmp_path)])
        assert refused.exit_code == 2
        assert complaint in refused.output


def test_every_checkpoint_has_a_task_a_set_and_a_name_of_its_own() -> None:
    assert len({checkpoint.name for checkpoint in CHECKPOINTS}) == len(CHECKPOINTS)
    assert {checkpoint.task for checkpoint in CHECKPOINTS} == set(TASKS)
    others = {cell.checkpoint.data for name in ("labels", "embeddings") for cell in GRIDS[name].GRID.cells}
    assert {checkpoint.data for checkpoint in CHECKPOINTS} | others == set(SETS)


@pytest.mark.slow
def test_a_checkpoint_that_stands_is_not_trained_and_one_that_cannot_be_leaves_only_its_log(place: Place) -> None:
    place.prepare("tiny")
    weights = place.home / "checkpoints" / TINY.name / "model.safetensors"
    written = weights.stat().st_mtime_ns
    assert place.trained(TINY) == weights.parent
    assert weights.stat().st_mtime_ns == written
    home = weights.parent.parent
    assert not make(
        replace(TINY, name="broken", data="gone"), place.sets, home, threads=1, bfloat16=False, device="cpu"
    )
    assert not (home / "broken").exists()
    assert "gone/train.jsonl" in (home / "broken.log").read_text()
