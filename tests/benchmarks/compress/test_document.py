"""The document says what the cells say, from their files alone."""

from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.compress.document import DOCUMENT, document_of
from benchmarks.compress.grid import BUDGETS, POINTS, VARIANTS, cells
from benchmarks.compress.promises import promises_of
from benchmarks.compress.reading import FORMAT, RESULTS, read_cells

GRID = {cell.name: cell for cell in cells()}


def cell_file(
    name: str, changes: Sequence[float] = (0.0, -0.001, -0.002, -0.03), kept: float | None = None, **more: Any
) -> dict[str, Any]:
    """The file of a cell whose metric changed by so much at each budget, and that kept this budget."""
    cell = GRID[name]
    common = {"encoder_parameters": 1000, "operations": 1000, "estimated_speedup": 1.0, "test": {}}
    points = [common | {"share": 1.0, "metric": 0.8, "change": {"value": 0.0, "interval": [0.0, 0.0]}}]
    for budget, change in zip(BUDGETS, changes, strict=True):
        point = {
            "budget": budget,
            "share": budget - 0.01,
            "metric": 0.8 + change,
            "change": {"value": change, "interval": [change - 0.005, change + 0.005]},
            "encoder_parameters": round(1000 * budget),
            "estimated_speedup": 1 / budget,
            "tokens_per_unknown": 10 / budget,
        }
        points.append(common | point)
    told = {"test": "exact", "rows": 400, "asymptotic": False, "tested": 2, "passed": 1, "p_value": 0.01}
    return {
        "format": FORMAT,
        "cell": name,
        "data": cell.checkpoint.data,
        "model": cell.checkpoint.family,
        "seed": cell.checkpoint.seed,
        "variant": cell.variant,
        "revision": VARIANTS[cell.variant].revision,
        "metric": "accuracy",
        "rows": {"deciding": 600, "confirming": 400, "calibration": 1000, "test": 2000},
        "tokens": 12_000,
        "points": points,
        "certified": [{"points": asked, "budget": kept, **told} for asked in POINTS],
        "seconds": {"shared": 60.0, "budgets": [10.0] * len(BUDGETS), "run": 100.0, "whole": 120.0},
        "threads": 1,
        "load": [1.0, 3.0],
    } | more


def rows_after(text: str, heading: str) -> list[list[str]]:
    """The cells of the table behind a heading, without its head."""
    lines = [line for line in text.split(f"## {heading}\n")[1].split("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_document_is_what_the_cells_give() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document_of(read_cells(RESULTS))


def test_the_cells_that_are_kept_are_of_the_grid() -> None:
    for one in read_cells(RESULTS):
        assert one["format"] == FORMAT
        assert one["cell"] in GRID


def test_without_cells_it_says_so() -> None:
    text = document_of([])
    assert f"0 of {len(GRID)} cells. **The others are not measured yet.**" in text
    assert "##" not in text


def test_cells_of_an_earlier_method_are_named() -> None:
    names = [f"sst2-minilm-s{seed}-compress" for seed in (0, 1, 2)]
    found = [cell_file(names[0]), cell_file(names[1], revision=1), cell_file(names[2])]
    del found[2]["revision"]
    assert f"not again yet:** `{names[1]}`, `{names[2]}`." in document_of(found)
    assert "not again yet" not in document_of(found[:1])


def test_seeds_are_put_together_and_sets_are_held_to_the_targets() -> None:
    found = [
        cell_file("sst2-minilm-s0-compress", (0.0, 0.0, -0.01, -0.02)),
        cell_file("sst2-minilm-s1-compress", (0.0, 0.0, -0.02, -0.02)),
        cell_file("cola-minilm-s0-compress", (0.0, -0.02, -0.001, -0.04)),
        cell_file("cola-mpnet-base-s0-compress", (-0.5, -0.5, -0.5, -0.5)),
        cell_file("cola-minilm-s0-fisher", (-0.5, -0.5, -0.5, -0.5)),
    ]
    text = document_of(found)
    assert rows_after(text, "By set") == [
        ["cola", "minilm", "accuracy", "1", "2,000", "80.00", "+0.00", "-2.00", "-0.10", "-4.00"],
        [
            *("sst2", "minilm", "accuracy", "2", "2,000", "80.00 ± 0.00"),
            *("+0.00 ± 0.00", "+0.00 ± 0.00", "-1.50 ± 0.71", "-2.00 ± 0.00"),
        ],
        ["cola", "mpnet-base", "accuracy", "1", "2,000", "80.00", "-50.00", "-50.00", "-50.00", "-50.00"],
    ]
    over = rows_after(text, "Over all sets")
    assert [row[:6] for row in over] == [
        ["0.8", "2", "+0.00", "+0.00", "–", ""],
        ["0.65", "2", "-1.00", "-2.00", "at most 0.5 lost", "**missed** so far"],
        ["0.5", "2", "-0.80", "-1.50", "at most 1 lost", "met so far"],
        ["0.35", "2", "-3.00", "-4.00", "–", ""],
    ]
    assert over[2][7:] == ["50%", "2.00x"]


@pytest.mark.parametrize(
    ("kept", "change", "fell_short", "is_refuted"),
    [(None, -0.03, False, False), (0.35, -0.003, False, False), (0.35, -0.012, True, False), (0.35, -0.03, True, True)],
)
def test_promises_are_held_to_the_held_out_rows(
    kept: float | None, change: float, fell_short: bool, is_refuted: bool
) -> None:
    found = [cell_file("sst2-minilm-s0-compress", (0.0, 0.0, 0.0, change), kept)]
    within_one, _ = promises_of(found)
    assert (within_one.fell_short, within_one.is_refuted) == (fell_short, is_refuted)
    (row, _) = rows_after(document_of(found), "What was certified")
    told = "–" if kept is None else "1 at 0.35"
    assert row == ["1", "exact", "1", str(int(kept is not None)), told, str(int(fell_short)), str(int(is_refuted))]


def test_promises_are_counted_over_all_runs_and_by_test() -> None:
    found = [cell_file("sst2-minilm-s0-compress", kept=0.5), cell_file("sst2-minilm-s0-fisher")]
    found.append(cell_file("stsb-minilm-s0-compress", kept=0.65))
    for certified in found[-1]["certified"]:
        certified |= {"test": "bca_bootstrap", "asymptotic": True}
    rows = rows_after(document_of(found), "What was certified")
    assert rows[:3] == [
        ["1", "bca bootstrap (asymptotic)", "1", "1", "1 at 0.65", "0", "0"],
        ["1", "exact", "2", "1", "1 at 0.5", "0", "0"],
        ["1", "all", "3", "2", "1 at 0.65, 1 at 0.5", "0", "0"],
    ]


def test_variants_stand_beside_the_method_on_the_same_checkpoint() -> None:
    names = ("sst2-minilm-s0-fisher", "sst2-minilm-s0-compress", "sst2-minilm-s1-compress", "sst2-minilm-s0-no-refit")
    rows = rows_after(document_of([cell_file(name) for name in names]), "What single parts are worth")
    assert [row[1] for row in rows] == ["compress", "without refit", "Fisher masks"]


def test_a_variant_on_another_checkpoint_is_told_apart() -> None:
    found = [
        cell_file("cola-minilm-s0-compress", checkpoint="one"),
        cell_file("cola-minilm-s0-contiguous", checkpoint="other"),
    ]
    rows = rows_after(document_of(found), "What single parts are worth")
    assert [row[1] for row in rows] == ["compress", "contiguous order (another training)"]


def test_latency_is_told_by_the_untouched_model_of_the_same_runtime() -> None:
    budgets = {f"{budget:g}": 10 * budget for budget in BUDGETS}
    pytorch = {"untouched": 10.0, "compact, nothing removed": 9.0, **budgets}
    workload = {"batch": 32, "tokens": 20.4, "turns": 15, "pytorch": pytorch, "onnx": {"untouched": 20.0, **budgets}}
    measured = {"workloads": [workload], "threads": 1, "load": [2.0, 6.4]}
    text = document_of([cell_file("sst2-minilm-s0-compress", latency=measured)])
    about = ["sst2", "minilm", "32 of 20 tokens"]
    assert rows_after(text, "Latency") == [
        [*about, "PyTorch", "10.0", "0.90", "0.80", "0.65", "0.50", "0.35", "15", "2 to 6"],
        [*about, "ONNX Runtime", "20.0", "–", "0.40", "0.33", "0.25", "0.17", "15", "2 to 6"],
    ]


def test_every_row_of_a_table_has_as_many_cells_as_its_head() -> None:
    for part in document_of([cell_file(name) for name in GRID]).split("\n\n"):
        lines = part.splitlines()
        if lines[0].startswith("|"):
            assert len({line.count("|") for line in lines}) == 1
