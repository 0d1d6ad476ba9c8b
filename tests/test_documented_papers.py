"""The figures that ``docs/papers.md`` alone has are those of the cells, and those of other pages stand there."""

import re
from collections.abc import Mapping
from statistics import median
from typing import Any

import pytest

from benchmarks.grids.evidence import compared
from benchmarks.harness import read_cells
from benchmarks.tables import POINT, where
from tests.documents import ROOT

PAGE = " ".join((ROOT / "docs" / "papers.md").read_text(encoding="utf-8").split())
MOST_WORDS = 1500
LAYERS = [cell for cell in read_cells("layers") if cell["arm"] in ("top-plain", "top-teacher")]
Content = Mapping[str, Any]


def lost(cell: Content, dropped: int, part: str) -> float:
    """The fall of the metric without so many layers, in points."""
    before, after = (cell["report"]["path"][count][part][cell["metric"]] for count in (0, dropped))
    return POINT * (before - after)


def within(cell: Content, points: float) -> int:
    """The most layers without which the metric on the deciding rows has fallen by at most so many points."""
    counts = range(len(cell["report"]["path"]))
    return max(count for count in counts if lost(cell, count, "deciding") <= points + 1e-9)


def rows_within() -> list[str]:
    """The table of layers within points."""
    rows = []
    for model, arm in (("minilm", "top-teacher"), ("mpnet-base", "top-plain")):
        for data in sorted({cell["data"] for cell in where(LAYERS, model=model, arm=arm)}):
            same = where(LAYERS, model=model, arm=arm, data=data)
            chosen = [[(within(cell, points), cell) for cell in same] for points in (1, 2, 3)]
            told = [", ".join(f"{count} ({lost(cell, count, 'test'):.2f})" for count, cell in one) for one in chosen]
            rows.append(f"| {data} | {model} | {' | '.join(told)} |")
    return rows


def rows_of_sizes() -> list[str]:
    """The table of large and small models."""
    cells = {cell["cell"]: cell for cell in read_cells("compress")}
    rows = []
    for data in ("sst2", "cola"):
        told = []
        for model, element in (("minilm", None), ("mpnet-base", None), ("mpnet-base", "encoder.0.5")):
            cell = cells.get(f"{data}-{model}-s0-earlier") or cells[f"{data}-{model}-s0-compress"]
            (point,) = (point for point in cell["report"]["path"] if point["element"] == element)
            (load,) = (load for load in cell["latency"]["workloads"] if load["batch"] == 1)
            milliseconds = load["onnx"]["untouched" if element is None else "0.5"]
            told.append(f"{POINT * point['test']['accuracy']:.1f}, {milliseconds:.1f} ms")
        rows.append(f"| {data} | {' | '.join(told)} |")
    return rows


def test_the_page_is_short() -> None:
    assert len(PAGE.split()) <= MOST_WORDS


@pytest.mark.parametrize("row", [*rows_within(), *rows_of_sizes()])
def test_a_row_of_the_page_is_that_of_the_cells(row: str) -> None:
    assert row in PAGE


def test_what_held_out_rows_say_of_layers_within_a_point_is_counted() -> None:
    falls = [lost(cell, within(cell, 1), "test") for cell in LAYERS]
    assert (len(falls), sum(fall > 1 + 1e-9 for fall in falls), sum(abs(fall - 1) < 1e-9 for fall in falls)) == (
        23,
        5,
        4,
    )
    assert "Of 23 choices within one point five lost more on held-out rows and four just one" in PAGE


def test_how_much_faster_fewer_layers_train_is_that_of_the_cells() -> None:
    times = [cell["report"]["trials_seconds"] for cell in where(LAYERS, model="minilm")]
    ratio = median((five - base) / (three - four) for base, five, four, three in times)
    assert f"3 layers {ratio:.2f} times as fast as 5 (median of {len(times)}" in PAGE


def test_which_passes_accepted_hard_attention_is_that_of_the_cells() -> None:
    told = {}
    for arm in ("paper", "published"):
        found = [cell["report"].get("hard_attention") for cell in where(compared(read_cells("evidence")), arm=arm)]
        kept = [layers for layers in found if layers is not None]
        told[arm] = sum(map(bool, kept)), len(kept)
    assert told["paper"][0] == 0
    assert f"accepted no hard attention in {told['paper'][1]} passes" in PAGE
    assert f"`published` did in {told['published'][0]} of {told['published'][1]}" in PAGE


def test_how_alike_neighbours_are_and_what_clusters_span_is_that_of_the_cells() -> None:
    reports = {cell["cell"]: cell["report"]["reports"] for cell in read_cells("redundancy")}
    matrices = [one["cka"]["matrix"] for name, one in reports.items() if name.endswith("pretrained")]
    pairs = [[matrix[layer][layer + 1] for layer in range(len(matrix) - 1)] for matrix in matrices]
    inner, last = [value for one in pairs for value in one[:-1]], [one[-1] for one in pairs]
    assert f"{min(inner):.2f} to {max(inner):.2f}, the last {min(last):.2f} to {max(last):.2f}" in PAGE
    shares = {name: _near(one["clusters"]["windows"]) for name, one in reports.items()}
    tagging = [share for name, share in shares.items() if name.endswith("pretrained")]
    others = [share for name, share in shares.items() if name.endswith("finetuned")]
    assert (
        f"{min(tagging):.0%} to {max(tagging):.0%} (tagging), {min(others):.0%} to {max(others):.0%}"
        in PAGE.replace(" %", "%").replace("85 to", "85% to").replace("99 to", "99% to")
    )


def _near(windows: Mapping[str, int]) -> float:
    return sum(windows.get(size, 0) for size in ("1", "2")) / sum(windows.values())


@pytest.mark.parametrize(
    ("figures", "page", "line"),
    [
        (("3.0 %", "4 of 26", "and 3 worse"), "results", r"`paper` \| 26 \| -5\.9% \| -0\.8% \| 4 \| 19 \| 3 \| 3\.0%"),
        (
            ("1.29 to 1.85",),
            "results",
            r"`paper` \| before \| 8 \| 3 \| 1\.29 .*\n.*`paper` \| after \| 8 \| 3 \| 1\.85",
        ),
        (
            ("1.33 to 1.00",),
            "results",
            r"`robust` \| before \| 8 \| 3 \| 1\.33 .*\n.*`robust` \| after \| 8 \| 3 \| 1\.00",
        ),
        (("magnitude +1.30",), "evidence", r"sst2 \| magnitude: .* \| \+1\.30 \|"),
        (("L1 +0.90",), "evidence", r"sst2 \| L1: .* \| \+0\.90 \|"),
        (("Taylor +0.10",), "evidence", r"sst2 \| Taylor: .* \| \+0\.10 \|"),
        (("(`paper`) -0.40",), "evidence", r"sst2 \| the pass \(`paper`\) \| 1\.4% \| -0\.40 \|"),
        (("(`robust`, +0.36)",), "evidence", r"rte \| the pass \(`robust`\) .* \+0\.36 \|"),
        (
            ("magnitude -1.08, Taylor -1.44",),
            "evidence",
            r"rte \| magnitude: .* -1\.08 \|(?s:.*)rte \| Taylor: .* -1\.44 \|",
        ),
        (("-5.42 points, `paper` -1.44",), "results", r"`random-order` .* -5\.42 ±"),
        (("`paper` -1.44",), "results", r"rte \| `paper` .* -1\.44 ±"),
        (("-1.56, -1.32",), "results", r"`layers-first` .* -1\.56 ±"),
        (("-1.56, -1.32",), "results", r"`no-hard-attention` .* -1\.32 ±"),
        (("+0.65 with the bottom before",), "results", r"`bottom-middle-top` .* \+0\.65 ±"),
        (("-1.87",), "evidence", r"sst2 \| minilm \| trained again .* -1\.87 ±"),
        (("-1.35",), "evidence", r"ag-news \| minilm \| trained again .* -1\.35 \|"),
        (("-1.40",), "evidence", r"cola \| minilm \| trained again .* -1\.40 ±"),
        (("-1.50",), "evidence", r"sst2 \| mpnet-base \| trained again .* -1\.50 \|"),
        (("-8.00",), "evidence", r"stsb \| minilm \| trained again .* -8\.00 ±"),
        (("-25.20",), "evidence", r"squad \| minilm \| trained again .* -25\.20 \|"),
        (("-0.40 to -0.90",), "evidence", r"odd alternate \| 2,000 rows \| -0\.90, .* -0\.40, .* -0\.90, "),
        (("to answer 0.26 to 0.43",), "evidence", r"3 \| 76\.5% \| 2\.00x \| 0\.43 \| 0\.26 \| 0\.34 \| 0\.34"),
        (("215 to 699",), "evidence", r"2, 215: .*(?s:.*)2, 699: "),
        (("8 to 100",), "evidence", r"6, 8: (?s:.*)8, 100: "),
    ],
)
def test_figures_of_other_pages_stand_there(figures: tuple[str, ...], page: str, line: str) -> None:
    assert all(figure in PAGE for figure in figures)
    assert re.search(line, (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))
