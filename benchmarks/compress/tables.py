"""Tables of the cost of compression on held-out rows, each a list of lines."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, stdev

from benchmarks.compress.grid import BUDGETS, COMPRESS, VARIANTS, cells
from benchmarks.compress.reading import POINT, Content, change_at, point_at
from benchmarks.finetune import BASE

TARGETS = {0.65: 0.5, 0.5: 1.0}
"""Largest mean loss of points over the sets, by budget."""
PROTOTYPE: Mapping[str, Sequence[float]] = {
    "sst2": (-0.27, -0.47, -0.60, -2.00),
    "cola": (-0.67, -0.10, -0.86, -1.82),
    "stsb": (0.25, -0.14, -0.12, -1.61),
    "another set of sentence pairs": (0.00, -0.28, 0.05, -0.09),
}
"""Changes of a prototype in points on sets of the same names, with MiniLM and one seed each, at 0.79, 0.64, 0.49 and 0.34 of
the operations (on sst2 0.30)."""
NONE = "–"
Lines = list[str]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Lines:
    """The lines of a Markdown table."""
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def budget_heads() -> list[str]:
    """The budgets as column heads."""
    return [f"{budget:g}" for budget in BUDGETS]


def compressed(found: Sequence[Content]) -> dict[tuple[str, str], list[Content]]:
    """Cells of the standard variant, by model and set, the small model first."""
    chosen: dict[tuple[str, str], list[Content]] = {}
    for one in found:
        if one["variant"] == COMPRESS:
            chosen.setdefault((one["model"], one["data"]), []).append(one)
    return dict(sorted(chosen.items(), key=lambda item: (item[0][0] != BASE, item[0])))


def spread(values: Sequence[float], form: str = "+.2f") -> str:
    """The mean, with the standard deviation if there are several values."""
    if not values:
        return NONE
    more = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
    return f"{mean(values):{form}}{more}"


def changes(group: Sequence[Content], budget: float) -> list[float]:
    """The changes in points of all cells that have a model of this budget."""
    return [change for one in group if (change := change_at(one, budget)) is not None]


def by_set(found: Sequence[Content]) -> Lines:
    """The main table."""
    rows = []
    for (model, data), group in compressed(found).items():
        untouched = [POINT * one["points"][0]["metric"] for one in group]
        name = group[0]["metric"].replace("_", " ")
        about = [data, model, name, str(len(group)), f"{group[0]['rows']['test']:,}", spread(untouched, ".2f")]
        rows.append([*about, *(spread(changes(group, budget)) for budget in BUDGETS)])
    return table(["set", "model", "metric", "seeds", "held-out rows", "untouched", *budget_heads()], rows)


def over_sets(found: Sequence[Content]) -> Lines:
    """Means over the sets of the small model, each the mean over its seeds, with the targets."""
    groups = [group for (model, _), group in compressed(found).items() if model == BASE]
    is_whole = len(groups) == len({cell.checkpoint.data for cell in cells() if cell.checkpoint.family == BASE})
    rows = []
    for index, budget in enumerate(BUDGETS):
        means = [mean(values) for group in groups if (values := changes(group, budget))]
        if not means:
            continue
        points = [point for group in groups for one in group if (point := point_at(one, budget)) is not None]
        parameters = mean(
            point["encoder_parameters"] / one["points"][0]["encoder_parameters"]
            for group in groups
            for one in group
            if (point := point_at(one, budget)) is not None
        )
        rows.append(
            [
                f"{budget:g}",
                str(len(means)),
                f"{mean(means):+.2f}",
                f"{min(means):+.2f}",
                *_against(mean(means), TARGETS.get(budget), so_far="" if is_whole else " so far"),
                f"{mean(values[index] for values in PROTOTYPE.values()):+.2f}",
                f"{parameters:.0%}",
                f"{mean(point['estimated_speedup'] for point in points):.2f}x",
            ]
        )
    head = [
        "budget",
        "sets",
        "mean",
        "worst set",
        "target",
        "",
        "prototype",
        "encoder's parameters",
        "fewer operations",
    ]
    return table(head, rows)


def beside_prototype(found: Sequence[Content]) -> Lines:
    """Comparison with the prototype, on the sets on which it was measured."""
    rows = []
    for (model, data), group in compressed(found).items():
        if model == BASE and data in PROTOTYPE:
            rows.append([f"{data}, here", *(spread(changes(group, budget)) for budget in BUDGETS)])
            rows.append([f"{data}, prototype", *(f"{value:+.2f}" for value in PROTOTYPE[data])])
    return table(["set", *budget_heads()], rows) if rows else []


def variants(found: Sequence[Content]) -> Lines:
    """The variants and the published method, on the same checkpoint and rows."""
    measured = [one for one in found if one["variant"] != COMPRESS]
    rows = []
    for model, data, seed in sorted({(one["model"], one["data"], one["seed"]) for one in measured}):
        same = {one["variant"]: one for one in found if (one["model"], one["data"], one["seed"]) == (model, data, seed)}
        for name in VARIANTS:
            if name in same:
                cells = [spread(changes([same[name]], budget)) for budget in BUDGETS]
                title = VARIANTS[name].title + ("" if _is_of_one_training(same, name) else " (another training)")
                rows.append([data, title, *cells, f"{same[name]['seconds']['run']:.0f}"])
    return table(["set", "variant", *budget_heads(), "seconds"], rows) if rows else []


def _is_of_one_training(same: Mapping[str, Content], name: str) -> bool:
    """Whether a variant was measured on the checkpoint of the method itself."""
    return COMPRESS not in same or same[name].get("checkpoint") == same[COMPRESS].get("checkpoint")


def _against(found: float, lost: float | None, so_far: str) -> tuple[str, str]:
    if lost is None:
        return NONE, ""
    return f"at most {lost:g} lost", f"{'met' if -found <= lost else '**missed**'}{so_far}"
