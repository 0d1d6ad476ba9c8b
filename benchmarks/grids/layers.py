"""What dropping layers costs: a checkpoint whose layers leave by one strategy, and one way to train what is left.

First come layers from the top on every set, without training, with it, and with a teacher; then all strategies with a short
training and the best of them with a full one, then more seeds, then the larger model. Trainings multiply in bfloat16, for time.
A run tries every number of layers; the tables show some.
"""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from axformer.config.layers import Strategy
from axformer.drawing.lines import Line, LineChart, lines_chart
from benchmarks.checkpoints import checkpoint_named
from benchmarks.finetune import BASE, LARGE_BASE
from benchmarks.grids import compress
from benchmarks.harness import Arm, Cell, Content, Grid
from benchmarks.prune import by_prune, first_metric
from benchmarks.tables import NONE, change, grouped, spread, table, where, words

DROPPED = {BASE: (1, 2, 3), LARGE_BASE: (2, 4, 6)}
"""The numbers of layers in the tables, by model."""
_TRAININGS: Mapping[str, Mapping[str, Any]] = {
    "untrained": {},
    "plain": {"finetune": {"bf16": True, "teacher": False}, "parts": ("train",)},
    "teacher": {"finetune": {"bf16": True, "teacher": True}, "parts": ("train",)},
    "short": {"finetune": {"bf16": True, "teacher": False}, "parts": ("train",), "rows": {"train": 2000}},
}
"""``short`` compares strategies: 27 trainings on each set."""
_TITLES = {"untrained": "cut alone", "plain": "trained again", "teacher": "trained with a teacher"}
STRATEGIES = [one.value for one in Strategy if one is not Strategy.EXPLICIT]
_DRAWN = ("top", "even_alternate", "odd_alternate", "symmetric", "contribution", "bottom")
_COMPARED_ON = ("cola", "stsb", "sst2")
_SETS = (*_COMPARED_ON, "ag-news", "squad")
ARMS: Mapping[str, Arm] = {
    f"{strategy}-{training}": Arm(
        {"method": "layers", "strategy": strategy, "within_points": None, "confirm": 0.0}, **more
    )
    for strategy in STRATEGIES
    for training, more in _TRAININGS.items()
}
GRID = Grid(
    "layers",
    ARMS,
    [
        *(Cell(checkpoint_named(name).seeded(0), f"top-{training}") for training in _TITLES for name in _SETS),
        *(Cell(checkpoint_named(name).seeded(0), f"{one}-short") for name in _COMPARED_ON for one in STRATEGIES),
        *(Cell(checkpoint_named(name).seeded(0), "even_alternate-plain") for name in _COMPARED_ON),
        *(
            Cell(checkpoint_named(name).seeded(seed), f"top-{training}")
            for seed in (1, 2)
            for training in ("plain", "teacher")
            for name in _SETS
        ),
        Cell(checkpoint_named("sst2").seeded(0, LARGE_BASE), "top-plain"),
    ],
    by_prune(first_metric),
)


def _changes(cells: Sequence[Content], dropped: int) -> list[float]:
    paths = ((cell, cell["report"]["path"]) for cell in cells)
    return [change(cell, path[dropped]) for cell, path in paths if dropped < len(path)]


def _of_arm(cells: Sequence[Content], strategy: str, training: str, **more: Any) -> list[Content]:
    return where(cells, arm=f"{strategy}-{training}", **more)


def from_the_top(cells: Sequence[Content]) -> str:
    """The change of the metric by set, training and number of layers."""
    rows = []
    for model, counts in DROPPED.items():
        for data in sorted({cell["data"] for cell in where(cells, model=model)}):
            for training, title in _TITLES.items():
                if group := _of_arm(cells, "top", training, model=model, data=data):
                    rows.append(
                        [data, model, title, str(len(group)), *(spread(_changes(group, count)) for count in counts)]
                    )
    return table(["set", "model", "what is left is", "seeds", *("a sixth", "a third", "half of the layers")], rows)


def over_sets(cells: Sequence[Content]) -> str:
    """The means of MiniLM over the sets, of their means over seeds, as the papers' averages."""
    rows = []
    for training, title in _TITLES.items():
        groups = grouped(_of_arm(cells, "top", training, model=BASE), "data").values()
        means = [mean(mean(_changes(group, count)) for group in groups) for count in DROPPED[BASE]]
        rows.append([title, str(len(groups)), *(f"{value:+.2f}" for value in means)])
    return table(["MiniLM, from the top", "sets", "1 layer", "2 layers", "3 layers"], rows)


def teachers(cells: Sequence[Content]) -> str:
    """How often a teacher helped, over all sets, seeds and numbers of layers: a sentence."""
    gains = []
    for cell in _of_arm(cells, "top", "plain"):
        pair = _of_arm(cells, "top", "teacher", model=cell["model"], data=cell["data"], seed=cell["seed"])
        for count in DROPPED[cell["model"]] if pair else ():
            gains += [
                taught - alone for alone, taught in zip(_changes([cell], count), _changes(pair, count), strict=True)
            ]
    better = sum(gain > 0 for gain in gains)
    share = f"{better} of {len(gains)} comparisons of the same set, seed and number of layers"
    return f"With a teacher less was lost in {share}, and {mean(gains):.2f} points less in the mean."


def strategies(cells: Sequence[Content]) -> str:
    """The change of the metric for one, two and three layers, by strategy and set."""
    rows = []
    for training, title in (("short", "2,000 rows"), ("plain", "all rows")):
        for strategy in STRATEGIES:
            groups = [_of_arm(cells, strategy, training, data=data, model=BASE, seed=0) for data in _COMPARED_ON]
            if all(groups):
                told = [", ".join(spread(_changes(group, count)) for count in DROPPED[BASE]) for group in groups]
                rows.append([words(strategy), title, *told])
    return table(["strategy", "trained on", *_COMPARED_ON], rows)


def beside_compression(cells: Sequence[Content], compressed: Sequence[Content]) -> str:
    """Layers dropped from the top and trained with a teacher, beside compression of the same checkpoints."""
    rows = []
    for (data,), group in sorted(grouped(_of_arm(cells, "top", "teacher", model=BASE), "data").items()):
        others = {cell["seed"]: cell for cell in where(compressed, model=BASE, data=data, arm=compress.COMPRESS)}
        pairs = [(cell, others[cell["seed"]]) for cell in group if cell["seed"] in others]
        dropped, fitted = [cell for cell, _ in pairs], [other for _, other in pairs]
        figures = []
        for count, budget in zip(DROPPED[BASE], compress.BUDGETS, strict=False):
            figures += [spread(_changes(dropped, count)), spread(compress.changes(fitted, budget))]
        rows.append([data, str(len(pairs)), *figures])
    shares = (
        "0.83, dropped",
        "0.8, compressed",
        "0.67, dropped",
        "0.65, compressed",
        "0.5, dropped",
        "0.5, compressed",
    )
    return table(["set", "seeds", *shares], rows)


def size(cells: Sequence[Content]) -> str:
    """MiniLM's size and operations by the number of layers, and latencies as shares of the untouched model's."""
    rows = []
    group = [cell for cell in where(cells, model=BASE) if cell["arm"].startswith("top-")]
    loads = [load for cell in group for load in cell.get("latency", {}).get("workloads", ())]
    for count in DROPPED[BASE]:
        ends = [(path[0], path[count]) for cell in group if count < len(path := cell["report"]["path"])]
        left = mean(after["parameters"] / before["parameters"] for before, after in ends)
        speed = mean(after["estimated_speedup"] for _, after in ends)
        shares = [_share(loads, count, batch, runtime) for batch in (1, 32) for runtime in ("pytorch", "onnx")]
        rows.append([str(count), f"{left:.1%}", f"{speed:.2f}x", *shares])
    latencies = [f"{inputs}, {runtime}" for inputs in ("1 input", "32") for runtime in ("PyTorch", "ONNX")]
    return table(["layers dropped", "parameters left", "fewer operations", *latencies], rows)


def _share(loads: Sequence[Content], count: int, batch: int, runtime: str) -> str:
    shares = [load[runtime][str(count)] / load[runtime]["untouched"] for load in loads if load["batch"] == batch]
    return f"{mean(shares):.2f}" if shares else NONE


def pictures(cells: Sequence[Content]) -> dict[str, str]:
    """The strategies side by side on each set, as the paper's Figure 2: SVG by name."""
    drawn = {}
    for data in _COMPARED_ON:
        lines, metric = [], ""
        for strategy in _DRAWN:
            for cell in _of_arm(cells, strategy, "short", data=data, model=BASE, seed=0):
                changes = [(count, _changes([cell], count)[0]) for count in DROPPED[BASE]]
                lines.append(Line(words(strategy), changes))
                metric = words(cell["metric"])
        about = [f"{data}, MiniLM, trained again on 2,000 rows", "parameter aggregation and variance nearly as top"]
        chart = LineChart(
            *(f"layers-{data}", "Which layers leave", about, "layers dropped", f"change of {metric}, points", lines),
            form="+.2f",
        )
        drawn[f"layers-{data}"] = lines_chart(chart)
    return drawn
