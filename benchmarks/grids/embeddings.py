"""What compression costs packaged sentence embedders as they are, and a reranker: search, similarity, time and size.

An embedder is fitted without labels to texts of some of SQuAD's articles and to other texts; the questions of the other
articles search their paragraphs, and STS-B's test pairs tell the similarities. One arm fits to all texts and not to as many as
usual, and then trains each model on them for an epoch by the untouched one. A reranker learned from questions of some articles,
and ranks the paragraphs of others.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import eq

from axformer.config import make_config
from axformer.data.reading import read_rows
from axformer.drawing.lines import Line, LineChart, lines_chart
from axformer.forms.kinds import COMPACT
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.dataset import prepare
from axformer.reporting.speed import QUICK
from axformer.scores.decisions import decisions_of
from axformer.scores.measured import Measured
from benchmarks.checkpoints import Checkpoint, checkpoint_named
from benchmarks.finetune import BASE, BASES, LARGE_BASE
from benchmarks.harness import Arm, Cell, Content, Grid, Place
from benchmarks.paths import FORMS, SHOWN, answered, forms_along, speeds
from benchmarks.prune import rows_of
from benchmarks.tables import POINT, table

REFIT, LARGE, POLISHED, RANKED = "refit", "large", "polish", "ranked"
_BUDGETS = [0.8, 0.65, 0.5, 0.35]
ARMS: Mapping[str, Arm] = {
    REFIT: Arm({"budgets": _BUDGETS}, title="without training"),
    LARGE: Arm(
        {"budgets": _BUDGETS, "table_rows": 24, "calibrate_rows": 500},
        title="without training",
        rows={"validation": 150, "test": 200},
    ),
    POLISHED: Arm({"budgets": _BUDGETS[3:], "calibrate_rows": 5516, "polish": 1}, title="and trained for an epoch"),
    RANKED: Arm({"budgets": _BUDGETS, "table_rows": 32, "calibrate_rows": 250}, title="without training"),
}
_EFFORT = replace(QUICK, least=5, warm_ups=1)
"""A batch of 32 takes a large model half a minute."""
_SEARCH, _PAIRS, _LISTS = "search", "stsb", "passages"
"""The sets whose held-out rows are searched, compared, and ranked."""
_FIGURES = {
    _SEARCH: {
        "ndcg_10": "nDCG@10",
        "recall_10": "recall@10",
        "same_nearest": "same nearest",
        "old_index_ndcg_10": "old index",
    },
    _PAIRS: {"spearman": "Spearman"},
    _LISTS: {"accuracy": "right one first", "ndcg_10": "nDCG@10", "mrr_10": "MRR@10", "same_first": "same one first"},
}
"""In points: by the sets and their names in reports, and for people."""


def measure_cell(cell: Cell, arm: Arm, place: Place) -> Content:
    """Compress a model, and measure the models of its path, each in its forms: figures of searches and similarities in points,
    milliseconds of one text and of 32, and bytes. Speeds are measured in turns, so their ratios are of one run."""
    checkpoint, result = cell.checkpoint, place.home / "runs" / cell.name
    place.prepare(checkpoint.data)
    files = {checkpoint.data: rows_of(checkpoint, "test", arm, place)}
    if checkpoint.data == _LISTS:
        home = place.trained(checkpoint)
    else:
        home = BASES[checkpoint.family].home()
        place.prepare(_PAIRS)
        files[_PAIRS] = rows_of(replace(checkpoint, data=_PAIRS), "test", arm, place)
    loaded, data = {}, {}
    for part, file in files.items():
        rows = read_rows(str(file))
        loaded[part] = load_checkpoint(home).for_rows(rows)
        data[part] = prepare(rows, loaded[part], make_config())
    whole, samples = loaded[checkpoint.data], data[checkpoint.data].samples
    rows = data[checkpoint.data].rows
    few = prepare(rows.at(range(min(SHOWN, len(rows)))), whole, make_config()).samples
    found, models, untouched = [], [whole.model], None
    shutil.rmtree(result, ignore_errors=True)
    result.mkdir(parents=True)
    for budget, _, form in forms_along(cell, arm, place, home, whole, few, result):
        told = {"budget": budget, "form": form.name, "bytes": form.bytes}
        measured = {part: answered(form, loaded[part], data[part]) for part in loaded}
        untouched = untouched or measured
        found.append(told | _figures(measured, untouched))
        models.append(form.model)
    timed = speeds(whole, samples, models, _EFFORT)
    shutil.rmtree(result)
    return {
        "models": [
            one | {f"ms_{speed.batch}": speed.p50_ms for speed in own} for one, own in zip(found, timed, strict=True)
        ]
    }


def _figures(measured: Mapping[str, Measured], untouched: Mapping[str, Measured]) -> dict[str, float]:
    """In points, with the share of lists whose first passage is the untouched model's."""
    found: dict[str, float] = {}
    for part, one in measured.items():
        figures = dict(one.figures)
        if part == _LISTS:
            tops, those = (decisions_of(each) or [] for each in (one, untouched[part]))
            figures["same_first"] = sum(map(eq, tops, those)) / len(tops)
        found |= {name: POINT * figures[name] for name in _FIGURES[part]}
    return found


GRID = Grid(
    "embeddings",
    ARMS,
    [
        Cell(Checkpoint(f"{_SEARCH}-{model}", model, "embedding", _SEARCH, ()), arm)
        for model, arms in ((BASE, (REFIT, POLISHED)), (LARGE_BASE, (LARGE,)))
        for arm in arms
    ]
    + [Cell(checkpoint_named(_LISTS).seeded(0), RANKED)],
    measure_cell,
)


def _models(cells: Sequence[Content], data: str) -> Iterator[tuple[Cell, Content]]:
    """Every measured model of a set with its cell, in the order of the grid."""
    by_name = {cell["cell"]: cell for cell in cells}
    for planned in GRID.cells:
        if planned.checkpoint.data != data:
            continue
        for one in by_name.get(planned.name, {}).get("models", ()):
            yield planned, one


def by_model(cells: Sequence[Content]) -> str:
    """Every embedder of every path, in PyTorch and in int8; the untouched one once."""
    return _by_model(cells, _FIGURES[_PAIRS] | _FIGURES[_SEARCH], _SEARCH)


def rerankers(cells: Sequence[Content]) -> str:
    """The same of rerankers."""
    return _by_model(cells, _FIGURES[_LISTS], _LISTS)


def _by_model(cells: Sequence[Content], shown: Mapping[str, str], data: str) -> str:
    rows: list[list[str]] = []
    first: dict[str, Content] = {}
    forms = list(_models(cells, data))
    for (planned, one), (_, int8) in zip(forms[::2], forms[1::2], strict=True):
        assert (one["form"], int8["form"]) == FORMS, "both forms of each model, one after the other"
        base, is_trained = first.setdefault(planned.name, one), planned.arm == POLISHED
        if is_trained and one is base:
            continue
        kept = f"{one['budget']:g}" + (", trained" if is_trained else "")
        figures = [f"{one[name]:.1f}, {int8[name]:.1f}" for name in shown]
        times = [f"{base[name] / one[name]:.1f}x, {base[name] / int8[name]:.1f}x" for name in ("ms_1", "ms_32")]
        sizes = f"{one['bytes'] / 1e6:.0f}, {int8['bytes'] / 1e6:.0f}"
        rows.append([planned.checkpoint.family, kept, *figures, *times, sizes])
    head = ("model", "operations", *shown.values(), "one text", "32 texts", "MB")
    return table(head, rows)


def pictures(cells: Sequence[Content]) -> dict[str, str]:
    """nDCG@10 that is left against the operations that are left: SVG by name."""
    kept: dict[str, list[tuple[float, float]]] = {}
    whole: dict[str, float] = {}
    for planned, one in _models(cells, _SEARCH):
        if one["form"] == COMPACT:
            family = planned.checkpoint.family
            whole.setdefault(family, one["ndcg_10"])  # the untouched model comes first
            if planned.arm != POLISHED or one["budget"] < 1:
                points = kept.setdefault(f"{family}, {ARMS[planned.arm].title}", [])
                points.append((one["budget"], one["ndcg_10"] / whole[family]))
    lines = [Line(name, sorted(points)) for name, points in kept.items()]
    about = (
        "Search by smaller models",
        ["share of nDCG@10 that stays, PyTorch"],
        "share of the operations",
        "share kept",
    )
    return {"embeddings": lines_chart(LineChart("embeddings", *about, lines))} if lines else {}
