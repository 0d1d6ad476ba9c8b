"""What compression costs: a model, trained with a seed on a set, and compressed in one way.

One seed of every set comes first, then the variants, then more seeds. Cells of an earlier version hold two certificates of the
same models, the latencies of all models, and a published method that was written for the comparison.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from benchmarks.checkpoints import checkpoint_named
from benchmarks.finetune import BASE, LARGE_BASE
from benchmarks.harness import Arm, Cell, Content, Grid
from benchmarks.prune import by_prune, first_metric
from benchmarks.tables import NONE, POINT, change, grouped, points, spread, table, where, words

BUDGETS = (0.8, 0.65, 0.5, 0.35)
"""Shares of the encoder's operations."""
COMPRESS = "compress"
"""The method as it is."""
_SETS = ("sst2", "cola", "rte", "stsb", "ag-news", "squad", "conll2000")
_VARIED = ("sst2", "cola")
_FEWER = {"squad": {"calibrate": 200, "test": 500}}
"""Rows of sets whose rows are long."""
_KNOBS = {"method": "compress", "budgets": list(BUDGETS), "confirm": 0.4, "within_points": 1.0}


def _arm(title: str, *, calibrate: int | None = 1000, is_measured: bool = True, **knobs: Any) -> Arm:
    """One way to compress, calibrated on so many training rows, or on all of them."""
    rows = {"test": 2000} | ({} if calibrate is None else {"calibrate": calibrate})
    return Arm({**_KNOBS, **knobs}, title=title, parts=("calibrate",), rows=rows, is_measured=is_measured)


ARMS: Mapping[str, Arm] = {
    COMPRESS: _arm("compress"),
    "polished": _arm("polished for three epochs", polish=3),
    "all-rows": _arm("calibrated on all training rows", calibrate=None),
    "no-refit": _arm("without refit", repair="none"),
    "contiguous": _arm("contiguous order", is_measured=False),
    "magnitude": _arm("order of magnitude", is_measured=False),
    "magnitude-no-refit": _arm("order of magnitude, without refit", is_measured=False),
    "fisher": _arm("Fisher masks", is_measured=False),
    "fisher-rearranged": _arm("Fisher masks, rearranged", is_measured=False),
    "fisher-tuned": _arm("Fisher masks, rearranged, scalars tuned", is_measured=False),
}
GRID = Grid(
    "compress",
    ARMS,
    [
        *(Cell(checkpoint_named(name).seeded(0), COMPRESS, _FEWER.get(name, {})) for name in _SETS),
        *(
            Cell(checkpoint_named(name).seeded(0), arm)
            for name in _VARIED
            for arm in ARMS
            if arm != COMPRESS and ARMS[arm].is_measured
        ),
        *(Cell(checkpoint_named(name).seeded(0, LARGE_BASE), COMPRESS) for name in _VARIED),
        *(
            Cell(checkpoint_named(name).seeded(seed), COMPRESS, _FEWER.get(name, {}))
            for seed in (1, 2)
            for name in _SETS
        ),
    ],
    by_prune(first_metric),
)
_TARGETS = {0.65: 0.5, 0.5: 1.0}
"""The most points that may be lost in the mean over the sets, by budget."""
_ROUNDING = 1e-9
"""Of a difference of two metrics."""


def point_at(cell: Content, budget: float) -> Content | None:
    """The model of a budget; None if the run had the same model as for the previous budget."""
    return next((point for point in cell["report"]["path"] if point["element"] == f"encoder.{budget:g}"), None)


def changes(cells: Sequence[Content], budget: float) -> list[float]:
    """The changes in points of all cells that have a model of this budget."""
    return [change(cell, point) for cell in cells if (point := point_at(cell, budget)) is not None]


def _standard(cells: Sequence[Content]) -> dict[tuple[str, str], list[Content]]:
    """Cells of the method as it is, by model and set, the small model first."""
    standard = sorted(where(cells, arm=COMPRESS), key=lambda cell: (cell["model"] != BASE, cell["data"]))
    return grouped(standard, "model", "data")


def by_set(cells: Sequence[Content]) -> str:
    """The change of the metric by set and budget."""
    rows = []
    for (model, data), group in _standard(cells).items():
        untouched = mean(points(cell, cell["report"]["path"][0]) for cell in group)
        about = [data, model, str(len(group)), f"{words(group[0]['metric'])} {untouched:.2f}"]
        rows.append([*about, *(spread(changes(group, budget)) for budget in BUDGETS)])
    return table(["set", "model", "seeds", "untouched", *_heads()], rows)


def _heads() -> list[str]:
    return [f"{budget:g}" for budget in BUDGETS]


def over_sets(cells: Sequence[Content]) -> str:
    """Means over the sets of the small model, each the mean over its seeds, with the targets."""
    groups = [group for (model, _), group in _standard(cells).items() if model == BASE]
    rows = []
    for budget in BUDGETS:
        means = [mean(values) for group in groups if (values := changes(group, budget))]
        both = [
            (cell["report"]["path"][0], point)
            for group in groups
            for cell in group
            if (point := point_at(cell, budget)) is not None
        ]
        if means:
            parameters = mean(after["encoder_parameters"] / before["encoder_parameters"] for before, after in both)
            speed = mean(after["estimated_speedup"] for _, after in both)
            figures = [f"{budget:g}", str(len(means)), f"{mean(means):+.2f}", f"{min(means):+.2f}"]
            rows.append([*figures, _against(mean(means), _TARGETS.get(budget)), f"{parameters:.0%}", f"{speed:.2f}x"])
    head = ["budget", "sets", "mean", "worst set", "target", "encoder's parameters", "fewer operations"]
    return table(head, rows)


def _against(found: float, lost: float | None) -> str:
    if lost is None:
        return NONE
    return f"at most {lost:g} lost: {'met' if -found <= lost else '**missed**'}"


@dataclass(frozen=True)
class Promise:
    """One choice: the smallest model that was certified within some points."""

    points: float
    test: str
    budget: str | None
    """None if nothing was certified, so that the untouched model is kept."""
    fall: float
    """Fall of the metric on held-out rows, in points."""
    least_fall: float
    """The lower end of the fall's 95 % interval."""

    @property
    def fell_short(self) -> bool:
        """Whether the metric fell by the points or more on the held-out rows."""
        return self.budget is not None and self.fall >= self.points - _ROUNDING

    @property
    def is_refuted(self) -> bool:
        """Whether it fell by the points or more, and beyond what the noise of these rows explains."""
        return self.budget is not None and self.least_fall >= self.points - _ROUNDING


def promises_of(cell: Content) -> list[Promise]:
    """Every certified choice of a cell."""
    report = cell["report"]
    if "certificates" in report:
        return [_earlier_promise(cell, certificate) for certificate in report["certificates"]]
    certificate = report["certificate"]
    kept = next(point for point in report["path"] if point["kept"])
    found = report["comparison"]["test"]["differences"][cell["metric"]]
    budget = None if kept["element"] is None else kept["element"].removeprefix("encoder.")
    falls = -POINT * found["value"], -POINT * found["interval"][1]
    return [Promise(certificate["points"], _test(certificate), budget, *falls)]


def _earlier_promise(cell: Content, certificate: Content) -> Promise:
    budget = certificate["budget"]
    point = None if budget is None else point_at(cell, budget)
    if point is None:
        return Promise(certificate["points"], _test(certificate), None, 0.0, 0.0)
    value, (_, most) = point["difference"]["value"], point["difference"]["interval"]
    return Promise(certificate["points"], _test(certificate), f"{budget:g}", -POINT * value, -POINT * most)


def _test(certificate: Content) -> str:
    return words(certificate["test"]) + (" (asymptotic)" if certificate["asymptotic"] else "")


def certified(cells: Sequence[Content]) -> str:
    """The numbers of certified models and of those that fell short, over all runs."""
    every = [promise for cell in cells for promise in promises_of(cell)]
    rows = []
    for asked in sorted({one.points for one in every}):
        for test in sorted({one.test for one in every}):
            promises = [one for one in every if (one.points, one.test) == (asked, test)]
            kept = [one for one in promises if one.budget is not None]
            counts = Counter(one.budget for one in kept if one.budget is not None)
            budgets = ", ".join(f"{count} at {budget}" for budget, count in sorted(counts.items(), reverse=True))
            short, refuted = sum(one.fell_short for one in kept), sum(one.is_refuted for one in kept)
            figures = [str(len(promises)), str(len(kept)), budgets or NONE, str(short), str(refuted)]
            if promises:
                rows.append([f"{asked:g}", test, *figures])
    return table(["points", "test", "runs", "certified", "of these", "fell short", "beyond the noise"], rows)


def variants(cells: Sequence[Content]) -> str:
    """The variants and the published method, on the same checkpoint and rows."""
    rows = []
    for data in _VARIED:
        same = {cell["arm"]: cell for cell in where(cells, data=data, model=BASE, seed=0)}
        for name in (name for name in ARMS if name in same):
            other = same[name]["checkpoint"] != same[COMPRESS]["checkpoint"] if COMPRESS in same else False
            figures = [spread(changes([same[name]], budget)) for budget in BUDGETS]
            seconds = f"{same[name]['report']['seconds']:.0f}"
            rows.append([data, ARMS[name].title + ("†" if other else ""), *figures, seconds])
    return table(["set", "variant", *_heads(), "seconds"], rows)


def latency(cells: Sequence[Content]) -> str:
    """Latencies as shares of the untouched model's in the same runtime: means over the sets."""
    loads = [(cell["model"], load) for cell in cells for load in cell.get("latency", {}).get("workloads", ())]
    rows = []
    for model in (BASE, LARGE_BASE):
        for batch in (1, 32):
            for runtime, title in (("pytorch", "PyTorch"), ("onnx", "ONNX Runtime")):
                taken = [load[runtime] for of, load in loads if of == model and load["batch"] == batch]
                shares = [_share(taken, name) for name in ("compact, nothing removed", *_heads())]
                halves = [one["0.5"] / one["untouched"] for one in taken]
                shares[3] += f" ({min(halves):.2f} to {max(halves):.2f})"
                rows.append([model, str(batch), title, *shares])
    return table(["model", "inputs", "runtime", "nothing removed", *_heads()], rows)


def _share(taken: Sequence[Mapping[str, float]], name: str) -> str:
    shares = [one[name] / one["untouched"] for one in taken if name in one]
    return f"{mean(shares):.2f}" if shares else NONE
