"""Writes ``docs/layers-results.md`` from the files of the cells alone."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from axformer.config.layers import Strategy
from axformer.drawing.lines import Line, Lines, lines_chart
from benchmarks.compress.grid import COMPRESS
from benchmarks.compress.latency import ONNX, PYTORCH, UNTOUCHED
from benchmarks.compress.tables import NONE, changes, spread, table
from benchmarks.layers.grid import COMPARED_ON, DROPPED, FROM_THE_TOP, SHORT_ROWS, STRATEGIES, cells

RESULTS = Path("benchmarks/results/layers")
DOCUMENT = Path("docs/layers-results.md")
Content = Mapping[str, Any]
_TRAINED_ON = {"short": f"{SHORT_ROWS:,} rows", "plain": "all rows"}
_POINT = 100.0
DRAWN = (
    Strategy.TOP,
    Strategy.EVEN_ALTERNATE,
    Strategy.ODD_ALTERNATE,
    Strategy.SYMMETRIC,
    Strategy.CONTRIBUTION,
    Strategy.BOTTOM,
)
"""The strategies in the pictures."""
_BUDGETS = (0.8, 0.65, 0.5)
"""Of the encoder's operations, the nearest to what a sixth, a third and half of the layers leave (0.83, 0.67 and 0.5)."""
_TITLES = {"plain": "trained again", "teacher": "trained with the untouched model as teacher", "untrained": "cut alone"}


def read_cells(results: Path) -> list[Content]:
    """All existing cells, in the order of their names."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(results.glob("*.json"))]


def document_of(found: Sequence[Content], compressed: Sequence[Content] = ()) -> str:
    """Write the document.

    Args:
        found: the cells, at least one.
        compressed: the cells of :mod:`benchmarks.compress`, over checkpoints of the same names.
    """
    partial = " **The others are not measured yet.**" if len(found) < len(cells()) else ""
    sections = [
        f"""# What dropping layers costs

Made by `python -m benchmarks.layers`: {len(found)} of {len(cells())} cells.{partial} Each is a checkpoint that was fine-tuned
with one seed, whose layers [`method=layers`](layers.md) drops and, where it says so, trains again on the set's training rows
(three epochs for each number of layers, from the checkpoint, in mixed precision). Figures are of held-out rows that
decided nothing: the change of the metric in points (hundredths) against the untouched model, with the standard deviation
over seeds where there are several.{_told_earlier(found)}
""",
        _from_the_top(found),
        _strategies(found),
        _beside_compression(found, compressed),
        _size(found),
        _latencies(found),
    ]
    return "\n".join(section for section in sections if section)


def _told_earlier(found: Sequence[Content]) -> str:
    """The cells whose trainings were others than the settings of the grid ask for."""
    names = [one["cell"] for one in found if one["settings"] is not None and not one["settings"].get("bf16")]
    return (
        f"\n\n**Trained in float32 on batches of random rows, and not again yet:** `{'`, `'.join(names)}`."
        if names
        else ""
    )


def _of(found: Sequence[Content], **wanted: Any) -> list[Content]:
    return [one for one in found if all(one[name] == value for name, value in wanted.items())]


def _change(one: Content, dropped: int) -> float | None:
    point = next((point for point in one["points"] if point["dropped"] == dropped), None)
    if point is None:
        return None
    before, after = one["points"][0]["test"], point["test"]
    return _POINT * float(after[one["metric"]] - before[one["metric"]])


def _known(group: Sequence[Content], dropped: int) -> list[float]:
    return [change for one in group if (change := _change(one, dropped)) is not None]


def _changes(group: Sequence[Content], dropped: int) -> str:
    return spread(_known(group, dropped))


def _from_the_top(found: Sequence[Content]) -> str:
    rows = []
    for model, counts in DROPPED.items():
        for data in sorted({one["data"] for one in _of(found, model=model, strategy="top")}):
            for training in FROM_THE_TOP:
                group = _of(found, model=model, data=data, strategy="top", training=training)
                if group:
                    before = mean(one["points"][0]["test"][one["metric"]] for one in group)
                    figures = [f"{count}: {_changes(group, count)}" for count in counts]
                    about = [data, model, group[0]["metric"].replace("_", " "), _TITLES[training], str(len(group))]
                    rows.append([*about, f"{_POINT * before:.2f}", *figures])
    heads = ["set", "model", "metric", "what is left is", "seeds", "untouched", *["layers dropped: change"] * 3]
    lines = ["## From the top", "", *table(heads, rows), "", *_over_all_sets(found), *_told_of_teachers(found)]
    return "\n".join(lines) if rows else ""


def _over_all_sets(found: Sequence[Content]) -> list[str]:
    """The means of MiniLM over the sets that were trained in both ways, of their means over seeds, as the papers' averages."""
    top = _of(found, model="minilm", strategy="top")
    measured = ({one["data"] for one in _of(top, training=training)} for training in FROM_THE_TOP)
    sets, rows = sorted(set.intersection(*measured)), []
    for training in FROM_THE_TOP if sets else ():
        group = _of(top, training=training)
        means = [mean(mean(_known(_of(group, data=data), count)) for data in sets) for count in DROPPED["minilm"]]
        rows.append([_TITLES[training], *(f"{value:+.2f}" for value in means)])
    heads = [f"mean of {', '.join(sets)}", "1 layer", "2 layers", "3 layers"]
    return [*table(heads, rows), ""] if rows else []


def _told_of_teachers(found: Sequence[Content]) -> list[str]:
    """How often a teacher helped, over all sets, seeds and numbers of layers."""
    top = [one for one in found if one["strategy"] == "top"]
    both = {one["cell"].removesuffix("-teacher"): one for one in _of(top, training="teacher")}
    pairs = [
        (one, both[name]) for one in _of(top, training="plain") if (name := one["cell"].removesuffix("-plain")) in both
    ]
    gains = [
        taught - alone
        for one, other in pairs
        for count in DROPPED[one["model"]]
        if (alone := _change(one, count)) is not None and (taught := _change(other, count)) is not None
    ]
    if not gains:
        return []
    better = sum(gain > 0 for gain in gains)
    share = f"{better} of {len(gains)} comparisons of the same set, seed and number of layers"
    return [f"**With a teacher** less was lost in {share}, and {mean(gains):.2f} points less in the mean.", ""]


def _winners(found: Sequence[Content]) -> list[str]:
    """A line for each set: the strategies that lost least, by the number of layers, equal ones beside each other."""
    rows = []
    for data, group in _compared(found).items():
        best = []
        for count in DROPPED["minilm"]:
            changes = {one["strategy"].replace("_", " "): _change(one, count) for one in group}
            known = {name: change for name, change in changes.items() if change is not None}
            most = max(known.values())
            best.append(f"{', '.join(name for name, change in known.items() if change == most)} ({most:+.2f})")
        rows.append([data, *best])
    return table(["lost least", "1 layer", "2 layers", "3 layers"], rows) if rows else []


def write_pictures(found: Sequence[Content], images: Path) -> None:
    """Draw the strategies side by side on each set that all of those drawn are measured on, as the paper's Figure 2."""
    for data, group in _compared(found).items():
        lines = [_line(one) for strategy in DRAWN for one in _of(group, strategy=strategy.value)]
        metric = group[0]["metric"].replace("_", " ")
        told = [
            f"{data}, MiniLM, trained again on {SHORT_ROWS:,} rows",
            "parameter aggregation and variance nearly as top",
        ]
        chart = Lines(
            f"layers-{data}",
            "Which layers leave",
            told,
            "layers dropped",
            f"change of {metric}, points",
            lines,
            form="+.2f",
        )
        (images / f"layers-{data}.svg").write_text(lines_chart(chart), encoding="utf-8")


def _line(one: Content) -> Line:
    points = [(count, change) for count in DROPPED[one["model"]] if (change := _change(one, count)) is not None]
    return Line(one["strategy"].replace("_", " "), points)


def _compared(found: Sequence[Content]) -> dict[str, list[Content]]:
    """The cells of the short training by set, where all that is drawn is there."""
    by_set = {data: _of(found, data=data, training="short", seed=0) for data in COMPARED_ON}
    wanted = {strategy.value for strategy in DRAWN}
    return {data: group for data, group in by_set.items() if wanted <= {one["strategy"] for one in group}}


def _strategies(found: Sequence[Content]) -> str:
    rows, compared = [], {one["data"] for one in _of(found, training="short")}
    for training in ("short", "plain"):
        for strategy in STRATEGIES:
            group = _of(found, strategy=strategy.value, training=training, model="minilm", seed=0)
            for data in sorted({one["data"] for one in group} & compared):
                changes = [_changes(_of(group, data=data), count) for count in DROPPED["minilm"]]
                rows.append([data, _TRAINED_ON[training], strategy.value.replace("_", " "), *changes])
    rows.sort(key=lambda row: row[0])
    heads = ["set", "trained on", "strategy", "1 layer", "2 layers", "3 layers"]
    drawn = "\n\n".join(f"![Strategies on {data}](images/layers-{data}.svg)" for data in _compared(found))
    about = f"Seed 0, without a teacher.\n\n{drawn}" if drawn else "Seed 0, without a teacher."
    lines = ["## Strategies", "", about, "", *_winners(found), "", *table(heads, rows), ""]
    return "\n".join(lines) if rows else ""


def _beside_compression(found: Sequence[Content], compressed: Sequence[Content]) -> str:
    rows = []
    for model, counts in DROPPED.items():
        group = _of(found, model=model, strategy="top", training="teacher")
        for data in sorted({one["data"] for one in group}):
            others = {one["seed"]: one for one in _of(compressed, model=model, data=data, variant=COMPRESS)}
            pairs = [(one, others[one["seed"]]) for one in _of(group, data=data) if one["seed"] in others]
            if pairs:
                trained, fitted = [one for one, _ in pairs], [other for _, other in pairs]
                both = zip(counts, _BUDGETS, strict=True)
                figures = [(_changes(trained, count), spread(changes(fitted, budget))) for count, budget in both]
                rows.append([data, model, str(len(pairs)), *(figure for pair in figures for figure in pair)])
    about = (
        "Layers dropped from the top and trained with a teacher, beside [compression](compress.md) of the same "
        "checkpoints, which looks at no labels and trains nothing. The shares are of the encoder's operations; held-out rows "
        "are the same."
    )
    shares = (
        "0.83, dropped",
        "0.8, compressed",
        "0.67, dropped",
        "0.65, compressed",
        "0.5, dropped",
        "0.5, compressed",
    )
    heads = ["set", "model", "seeds", *shares]
    return "\n".join(["## Beside compression", "", about, "", *table(heads, rows), ""]) if rows else ""


def _size(found: Sequence[Content]) -> str:
    rows = []
    for model in sorted({one["model"] for one in found}):
        group = _of(found, model=model, strategy="top")
        for count in DROPPED[model]:
            points = [
                (one["points"][0], point) for one in group for point in one["points"] if point["dropped"] == count
            ]
            if points:
                left = mean(after["parameters"] / before["parameters"] for before, after in points)
                speed = mean(after["estimated_speedup"] for _, after in points)
                rows.append([model, str(count), f"{left:.1%}", f"{speed:.2f}x"])
    about = "Means over the sets. *Operations* are those of the whole model at the lengths of the data."
    seconds = [one["seconds"] for one in found if one["training"] != "untrained"]
    spent = (
        f"A cell with training took {mean(seconds) / 60:.0f} minutes in the mean, on a busy machine."
        if seconds
        else NONE
    )
    heads = ["model", "layers dropped", "parameters left", "fewer operations"]
    return "\n".join(["## Size and time", "", f"{about} {spent}", "", *table(heads, rows), ""]) if rows else ""


def _latencies(found: Sequence[Content]) -> str:
    rows = []
    for one in _of(found, training="untrained"):
        for workload in one.get("latency", {}).get("workloads", ()):
            for runtime, title in ((PYTORCH, "PyTorch"), (ONNX, "ONNX Runtime")):
                taken = workload[runtime]
                shares = [f"{taken[str(count)] / taken[UNTOUCHED]:.2f}" for count in DROPPED[one["model"]]]
                inputs = f"{workload['batch']} of {workload['tokens']:.0f} tokens"
                rows.append([one["data"], one["model"], inputs, title, f"{taken[UNTOUCHED]:.1f}", *shares])
    about = (
        "Medians of turns that all models took in one run, as shares of the untouched model's in the same runtime. Training "
        "changes no shapes, so each set was measured once."
    )
    heads = ["set", "model", "inputs", "runtime", "untouched, ms", "1 layer", "2 layers", "3 layers"]
    return "\n".join(["## Latency", "", about, "", *table(heads, rows), ""]) if rows else ""
