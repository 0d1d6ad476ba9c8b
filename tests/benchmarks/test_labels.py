"""What labels buy: played on a tiny model from the run to the held-out rows."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import harness
from benchmarks.checkpoints import Checkpoint
from benchmarks.grids import labels
from benchmarks.harness import Cell, Place
from benchmarks.rows import Row
from benchmarks.sets.catalog import POOLED, SETS
from benchmarks.sets.parts import Parts
from tests.tiny_models import save_tiny_checkpoint

TINY = Checkpoint("tiny-s0", "minilm", "classification", "tiny", ("accuracy",), max_length=16)


def rows(start: int, count: int) -> list[Row]:
    """Texts that are all different."""
    numbers = range(start, start + count)
    return [Row(f"word{index % 50} word{index // 50} word{index % 7}", "01"[index % 2]) for index in numbers]


@pytest.mark.slow
def test_certified_models_are_measured_on_rows_that_nothing_has_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "SETS", {"tiny": lambda _: Parts(rows(0, 100), rows(100, 400), rows(500, 90))})
    save_tiny_checkpoint(tmp_path / "home" / "checkpoints" / TINY.name)
    monkeypatch.setattr(labels, "POINTS", (20.0, 30.0))  # the tiny model's answers are random, and many change
    place = Place(tmp_path, tmp_path / "home", tmp_path / "cells")
    arm = replace(labels.ARMS[labels.CALIBRATED], knobs={"within_points": 30.0, "budgets": [0.9, 0.7]})
    content = labels.measured(Cell(TINY, labels.CALIBRATED), arm, place)
    assert content["unlabelled"] == 400, "the training rows calibrate and decide"
    choices = content["choices"]
    assert {(one["form"], one["points"], one["most"]) for one in choices} == {
        (form, points, most) for form in arm.forms for points in labels.POINTS for most in labels.BUDGETS
    }
    for one in choices:
        assert one["most"] is None or one["labels"] <= one["most"]
        assert ("fall" in one) == (one["seq"] > 0), "what is certified is measured"
    assert any("fall" in one for one in choices)
    cell = {
        "cell": "tiny-s0-calibrated",
        "data": "tiny",
        "arm": labels.CALIBRATED,
        "model": "minilm",
        "seed": 0,
        **content,
    }
    assert labels.by_set([cell]).splitlines()[-1].startswith("| tiny | 1 | 400 |")
    assert labels.held([cell]).startswith("Of ")
    assert labels.targets([cell]).count("of 1") == 6


@pytest.mark.parametrize("name", POOLED)
def test_a_pooled_set_has_each_input_once(name: str, tmp_path: Path) -> None:
    directory = tmp_path / POOLED[name]
    directory.mkdir()
    (directory / "train.jsonl").write_text("".join(f'{{"text": "{i % 30}", "label": "a"}}\n' for i in range(40)))
    (directory / "dev.jsonl").write_text('{"text": "5", "label": "a"}\n{"text": "x", "label": "b"}\n')
    parts = SETS[f"{name}-pooled"](tmp_path)
    texts = [row.text for part in (parts.train, parts.validation, parts.test) for row in part]
    assert sorted(texts) == sorted({*map(str, range(30)), "x"})
    assert (len(parts.train), len(parts.validation)) == (14, 9)
