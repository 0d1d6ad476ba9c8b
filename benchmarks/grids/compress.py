"""What compression costs: a model, trained with a seed on a set, and compressed in one way; every model of the path in PyTorch
and in ONNX int8.

One seed of every set comes first, then more seeds. Cells of an earlier version know PyTorch alone, and hold certificates,
shares of latencies, variants, and a published method that was written for the comparison.
"""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev
from typing import Any

from axformer.config import make_config
from axformer.data.reading import read_rows
from axformer.drawing.lines import Line, LineChart, lines_chart
from axformer.forms.kinds import COMPACT, ONNX_INT8
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.dataset import prepare, prepare_like
from axformer.methods.base import targets_of
from axformer.methods.targets import Targets
from axformer.plan.elements import encoder_share
from axformer.plan.plan import Plan
from axformer.reporting.environment import describe
from axformer.reporting.speed import QUICK
from axformer.scores.decisions import cost_of
from axformer.scores.measured import measure
from benchmarks.checkpoints import checkpoint_named
from benchmarks.finetune import BASE, LARGE_BASE
from benchmarks.harness import Arm, Cell, Content, Grid, Place
from benchmarks.paths import FORMS, SHOWN, answered, forms_along, speeds
from benchmarks.prune import first_metric, rows_of
from benchmarks.tables import NONE, POINT, change, grouped, points, spread, table, where, words

BUDGETS = (0.8, 0.65, 0.5, 0.35, 0.25)
"""Shares of the encoder's operations."""
_TRAINED = BUDGETS[2:]
"""Those at which a polish may pay."""
COMPRESS = "compress"
"""The method as it is."""
EARLIER = "earlier"
"""The method as it was when the variants were measured, on the same checkpoints."""
POLISHED = "polished"
"""And then every model trained without labels."""
_SETS = ("sst2", "cola", "rte", "stsb", "sms", "ag-news", "conll2000", "phrases", "ud-upos", "squad")
_VARIED = ("sst2", "cola")
"""Those of the variants."""
_FEWER = {"squad": {"calibrate": 200, "test": 500}}
"""Rows of sets whose rows are long."""
_LABELLED = {"validation": 400, "test": 1000}
"""A polish trains on all training rows, without their labels."""
_ROWS = {**_LABELLED, "calibrate": 1000}


def _earlier(title: str) -> Arm:
    return Arm(title=title, is_measured=False)


ARMS: Mapping[str, Arm] = {
    COMPRESS: Arm({"method": "compress", "budgets": list(BUDGETS)}, title="compress", rows=_ROWS),
    POLISHED: Arm({"method": "compress", "budgets": list(_TRAINED), "polish": 2}, title="and polished", rows=_LABELLED),
    EARLIER: _earlier("compress, as measured before int8"),
    "all-rows": _earlier("calibrated on all training rows"),
    "no-refit": _earlier("without refit"),
    "contiguous": _earlier("contiguous order"),
    "magnitude": _earlier("order of magnitude"),
    "magnitude-no-refit": _earlier("order of magnitude, without refit"),
    "fisher": _earlier("Fisher masks"),
    "fisher-rearranged": _earlier("Fisher masks, rearranged"),
    "fisher-tuned": _earlier("Fisher masks, rearranged, scalars tuned"),
}


def measure_cell(cell: Cell, arm: Arm, place: Place) -> Content:
    """Compress a model, and measure each model of its path on held-out rows: in its forms the change of the metric with its
    95 % paired interval, in points, bytes, and milliseconds for one input and for 32 with how many times as fast that is.
    Speeds are measured in turns, so their ratios are of one run."""
    named, result, began = cell.checkpoint, place.home / "runs" / cell.name, time.monotonic()
    home, asked = place.trained(named), replace(arm, rows={**arm.rows, **cell.rows})
    deciding, held_out = (read_rows(str(rows_of(named, part, asked, place))) for part in ("validation", "test"))
    checkpoint = load_checkpoint(str(home), place.device).for_rows(deciding)
    config = make_config(knobs={"max_length": named.max_length})
    first = prepare(deciding, checkpoint, config)
    test = prepare_like(first, held_out, checkpoint, config)
    few = prepare(deciding.at(range(min(SHOWN, len(deciding)))), checkpoint, config).samples
    untouched = measure(checkpoint.model, checkpoint.task, test.samples)
    metric = first_metric(named, untouched.figures)
    shutil.rmtree(result, ignore_errors=True)
    result.mkdir(parents=True)
    run = replace(asked, knobs={**arm.knobs, "seed": named.seed, "max_length": named.max_length})
    made = list(forms_along(cell, run, place, home, checkpoint, few, result))
    found = []
    for _, _, form in made:
        answers = answered(form, checkpoint, test)
        change = cost_of(untouched, answers, ()).differences[metric].model_dump(mode="json")
        found.append({"bytes": form.bytes, "test": {metric: answers.figures[metric]}, "change": change})
    seconds = time.monotonic() - began
    timed = speeds(checkpoint, first.samples, [form.model for _, _, form in made], QUICK)
    shutil.rmtree(result)
    path: dict[float, dict[str, Any]] = {}
    targets = targets_of(checkpoint, config, test.samples)
    for (budget, plan, form), figures, of_form in zip(made, found, timed, strict=True):
        point = path.setdefault(budget, _point(budget, plan, targets) | {"test": figures["test"], "forms": {}})
        speed = {f"speed_{one.batch}": one.model_dump(mode="json") for one in of_form}
        point["forms"][form.name] = {**figures, **speed}
    on = {} if place.device == "cpu" else {"on": place.device}
    report = on | {"seconds": seconds, "environment": describe(place.device), "path": list(path.values())}
    return {"metric": metric, "checkpoint": checkpoint.sha256, "report": report}


def _point(budget: float, plan: Plan, targets: Targets) -> dict[str, Any]:
    """A model of the path, as a report counts it."""
    return {
        "element": None if budget == 1 else encoder_share(budget),
        "estimated_speedup": targets.speedup(plan),
        "encoder_parameters": targets.encoder_parameters(plan),
    }


GRID = Grid(
    "compress",
    ARMS,
    [
        Cell(checkpoint_named(name).seeded(seed, model), arm, _FEWER.get(name, {}))
        for seed in (0, 1, 2)
        for model, names in ((BASE, _SETS), (LARGE_BASE, ("sst2", "cola", "rte", "stsb")))
        for name in (names if seed < 2 or model == BASE else ())
        for arm in (COMPRESS, POLISHED)
    ],
    measure_cell,
)
_TARGETS = {0.65: 0.5, 0.5: 0.0, 0.35: 0.5, 0.25: 1.0}
"""The most points that may be lost in the mean over the sets, by budget."""


def point_at(cell: Content, budget: float) -> Content | None:
    """The model of a budget; None if the run had the same model as for the previous budget."""
    return next((point for point in cell["report"]["path"] if point["element"] == f"encoder.{budget:g}"), None)


def changes(cells: Sequence[Content], budget: float) -> list[float]:
    """The changes in points of all cells that have a model of this budget."""
    return [change(cell, point) for cell in cells if (point := point_at(cell, budget)) is not None]


def _standard(cells: Sequence[Content], arm: str = COMPRESS) -> dict[tuple[str, str], list[Content]]:
    """Cells of the method as it is, by model and set, the small model first."""
    standard = sorted(where(cells, arm=arm), key=lambda cell: (cell["model"] != BASE, cell["data"]))
    return grouped(standard, "model", "data")


def by_set(cells: Sequence[Content]) -> str:
    """The change of the metric by set and budget."""
    rows = []
    ways = [*_standard(cells).items(), *_standard(cells, POLISHED).items()]
    for (model, data), group in ways:
        untouched = mean(points(cell, cell["report"]["path"][0]) for cell in group)
        what = data if group[0]["arm"] == COMPRESS else f"{data}, polished"
        about = [what, model, str(len(group)), f"{words(group[0]['metric'])} {untouched:.2f}"]
        rows.append([*about, *(spread(changes(group, budget)) for budget in BUDGETS)])
    return table(["set", "model", "seeds", "untouched", *_heads()], rows)


def _heads() -> list[str]:
    return [f"{budget:g}" for budget in BUDGETS]


def over_sets(cells: Sequence[Content]) -> str:
    """Means over the sets of the small model, each the mean over its seeds, with the targets."""
    rows = _over_sets(_standard(cells), "") + _over_sets(_standard(cells, POLISHED), ", polished")
    head = ["budget", "sets", "mean", "worst set", "target", "encoder's parameters", "fewer operations"]
    return table(head, rows)


def _over_sets(standard: Mapping[tuple[str, str], list[Content]], how: str) -> list[list[str]]:
    groups, rows = [group for (model, _), group in standard.items() if model == BASE], []
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
            figures = [f"{budget:g}{how}", str(len(means)), f"{mean(means):+.2f}", f"{min(means):+.2f}"]
            rows.append([*figures, _against(mean(means), _TARGETS.get(budget)), f"{parameters:.0%}", f"{speed:.2f}x"])
    return rows


def _against(found: float, lost: float | None) -> str:
    if lost is None:
        return NONE
    return f"at most {lost:g} lost: {'met' if -found <= lost else '**missed**'}"


def variants(cells: Sequence[Content]) -> str:
    """The variants and the published method of an earlier version, on the same rows."""
    rows = []
    for data in _VARIED:
        same = {cell["arm"]: cell for cell in where(cells, data=data, model=BASE, seed=0)}
        for name in (name for name in ARMS if name in same and name not in (COMPRESS, POLISHED)):
            other = same[name]["checkpoint"] != same[EARLIER]["checkpoint"] if EARLIER in same else False
            figures = [spread(changes([same[name]], budget)) for budget in BUDGETS]
            seconds = f"{same[name]['report']['seconds']:.0f}"
            rows.append([data, ARMS[name].title + ("†" if other else ""), *figures, seconds])
    return table(["set", "variant", *_heads(), "seconds"], rows)


@dataclass(frozen=True)
class Deployed:
    """The models of one budget in one form, over the sets."""

    budget: float
    form: str
    sets: int
    changes: Sequence[float]
    """Of the metric in points, the mean over the seeds of each set."""
    times: tuple[float, float]
    """How many times as fast as the untouched model in PyTorch, with one input and with 32: means over all cells."""
    megabytes: float

    @property
    def error(self) -> float:
        """The standard error of the mean change over the sets."""
        return stdev(self.changes) / len(self.changes) ** 0.5 if len(self.changes) > 1 else 0.0


def _deployed(cells: Sequence[Content]) -> list[Deployed]:
    """What the forms of some cells are worth, the untouched model's first."""
    points = [(cell, point) for cell in cells for point in cell["report"]["path"] if "forms" in point]
    found = []
    for budget in (1.0, *BUDGETS):
        element = None if budget == 1 else encoder_share(budget)
        for form in FORMS:
            taken = [
                (cell, point["forms"][form])
                for cell, point in points
                if point["element"] == element and form in point["forms"]
            ]
            by_set = grouped([{"data": cell["data"], **told} for cell, told in taken], "data").values()
            changes = [mean(POINT * one["change"]["value"] for one in group) for group in by_set]
            if changes:
                one, many = (mean(told[f"speed_{batch}"]["times"] for _, told in taken) for batch in (1, 32))
                size = mean(told["bytes"] for _, told in taken) / 1e6
                found.append(Deployed(budget, form, len(changes), changes, (one, many), size))
    return found


def frontier(cells: Sequence[Content]) -> str:
    """Every budget in every form: points, times as fast, and megabytes, over the sets."""
    rows = []
    for (model, arm), group in _in_forms(cells).items():
        for one in _deployed(group):
            if arm == POLISHED and one.budget == 1:
                continue
            kept = ("nothing removed" if one.budget == 1 else f"{one.budget:g}") + (
                ", polished" if arm == POLISHED else ""
            )
            change = _change_of(one)
            speeds_told = [f"{times:.1f}x" for times in one.times]
            worst = f"{min(one.changes):+.2f}"
            rows.append(
                [
                    model,
                    kept,
                    _FORM_TITLES[one.form],
                    f"{one.sets}",
                    change,
                    worst,
                    *speeds_told,
                    f"{one.megabytes:.0f}",
                ]
            )
    return table(["model", "operations", "form", "sets", "points", "worst set", "1 input", "32 inputs", "MB"], rows)


_COMMANDS = {
    (1.0, COMPRESS): "axformer my-model",
    (0.5, COMPRESS): "axformer prune my-model --data rows.jsonl --goal operations=2 --forms compact,onnx_int8",
    (0.25, COMPRESS): "... --goal operations=4",
    (0.25, POLISHED): "... --goal operations=4 --calibrate texts.jsonl",
}
"""What one runs for a model of the table: by budget and arm."""


def _on_same_sets(cells: Sequence[Content], model: str) -> dict[str, list[Deployed]]:
    """What the forms of a model are worth, by arm, over the sets that all its arms have."""
    groups = {arm: group for (one, arm), group in _in_forms(cells).items() if one == model}
    of_all = set.intersection(*({cell["data"] for cell in group} for group in groups.values()))
    return {arm: _deployed([cell for cell in group if cell["data"] in of_all]) for arm, group in groups.items()}


def what_to_run(cells: Sequence[Content]) -> str:
    """Commands, and what their files in ONNX int8 bring and cost the small model, all on the same sets."""
    found = _on_same_sets(cells, BASE)
    rows = []
    for (budget, arm), command in _COMMANDS.items():
        for one in found.get(arm, ()):
            if (one.budget, one.form) == (budget, ONNX_INT8):
                told = [f"{one.times[0]:.1f}x", f"{one.megabytes:.0f}", _change_of(one), f"{min(one.changes):+.2f}"]
                rows.append([f"`{command}`", *told, f"{one.sets}"])
    return table(["run", "1 input", "MB", "points", "worst set", "sets"], rows)


def _change_of(one: Deployed) -> str:
    return f"{mean(one.changes):+.2f}" + (f" ± {one.error:.2f}" if one.sets > 1 else "")


_MODELS = {BASE: "MiniLM", LARGE_BASE: "MPNet-base"}
_FORM_TITLES = {COMPACT: "PyTorch", ONNX_INT8: "ONNX int8"}


def _in_forms(cells: Sequence[Content]) -> dict[tuple[str, str], list[Content]]:
    """The cells that know forms and were measured as is asked for now, by model and arm."""
    told = [cell for cell in cells if cell["arm"] in (COMPRESS, POLISHED) and "otherwise" not in cell]
    known = [_with_device(cell) for cell in told if "forms" in cell["report"]["path"][0]]
    order = sorted(known, key=lambda cell: (cell["model"] != BASE, cell["arm"] != COMPRESS))
    return grouped(order, "model", "arm")


def _with_device(cell: Content) -> Content:
    """A cell whose model says what it ran on, if that was no processor: speeds of different devices have no common mean."""
    report = cell["report"]
    return {**cell, "model": f"{cell['model']} on {report['environment']['device']}"} if "on" in report else cell


def pictures(cells: Sequence[Content]) -> dict[str, str]:
    """The points that are lost against the speed that is won, by model: SVG by name."""
    lines: dict[str, list[Line]] = {}
    known = [(model, arm) for model, arm in _in_forms(cells) if model in _MODELS]
    for model, arm in known:
        found = _on_same_sets(cells, model)[arm]
        for form in FORMS:
            points = [(one.times[0], mean(one.changes)) for one in found if one.form == form]
            title = _FORM_TITLES[form] + (", polished" if arm == POLISHED else "")
            lines.setdefault(model, []).append(Line(title, sorted(points)))
    about = (
        ["mean over the same sets; the first point of a line is the whole model"],
        "times as fast with one input",
        "points",
    )
    return {
        f"frontier-{model}": lines_chart(
            LineChart(f"frontier-{model}", f"What speed costs {_MODELS[model]}", *about, of_model)
        )
        for model, of_model in lines.items()
    }
