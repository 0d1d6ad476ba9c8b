"""Does a pass remove more, and harm nothing, if more is asked of an acceptance than the paper does?

Losses on held-out rows are those at each model's own best temperature, fitted on these rows: doubt alone is no gain there. One
seed of every set comes first; then WNLI, whose extremes the paper reports, under the other presets; more seeds; and MPNet-base.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from axformer.config import reading_config
from axformer.data.reading import read_rows
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.dataset import prepare
from axformer.plan.plan import read_plan_file
from axformer.reporting.bench import compact_checkpoint
from axformer.scores.measured import measure_together
from axformer.scores.temperature import LossCurves
from axformer.wire.verdicts import FindingVerdict
from benchmarks.checkpoints import checkpoint_named
from benchmarks.finetune import BASE, LARGE_BASE
from benchmarks.grids.evidence import SEEDS, judgement, removed
from benchmarks.harness import Arm, Cell, Content, Grid, Place
from benchmarks.prune import by_prune, rows_of, usual_metric
from benchmarks.tables import NONE, POINT, grouped, spread, table, where

SETS = ("wnli", "squad", "sms", "rte", "ud-upos", "sst2", "cola", "ag-news")
_DEGENERATE = "wnli"
"""Its best model is a constant answer, so its points tell nothing of others."""
_EVERY: Mapping[str, Any] = {"conditions": ["temperature", "stable", "metric"]}
_ASKED: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "temperature": {"conditions": ["temperature"]},
    "stable": {"conditions": ["temperature", "stable"]},
    "every": _EVERY,
    "refit": {**_EVERY, "repair": "refit"},
    "top-10": {**_EVERY, "attention_top_k": 10},
    "ranked": {**_EVERY, "order": "importance", "neuron_groups": "ranked"},
}
_PRESETS = ("published", "robust")


def _arm(preset: str, **knobs: Any) -> Arm:
    return Arm({"accept_poor_model": True, **knobs}, preset, rows={"validation": 400})


ARMS = {name: _arm("paper", **knobs) for name, knobs in _ASKED.items()} | {name: _arm(name) for name in _PRESETS}
_LAST = ("top-10", "ranked")
_FIRST = [name for name in _ASKED if name not in _LAST]


def _cells(arms: Sequence[str], seeds: Sequence[int], sets: Sequence[str] = SETS, model: str = BASE) -> list[Cell]:
    return [Cell(checkpoint_named(one).seeded(seed, model), arm) for seed in seeds for one in sets for arm in arms]


def calibrated(result: Path, cell: Cell, place: Place) -> Content:
    """The mean held-out losses before and after at each model's own best temperature, these temperatures, and the change with
    its standard error over different inputs."""
    rows = read_rows(str(rows_of(cell.checkpoint, "test", ARMS[cell.arm], place)))
    untouched = load_checkpoint(str(place.trained(cell.checkpoint)), "cpu").for_rows(rows)
    samples = prepare(rows, untouched, reading_config(read_plan_file(result).config)).samples
    models = {"before": untouched.model, "after": compact_checkpoint(result, "cpu").model}
    curves = {name: LossCurves(untouched.task, samples) for name in models}
    measure_together(models, untouched.task, samples, lambda name, output, batch: curves[name].record(output, batch))
    (before, one), (after, other) = (curve.best() for curve in curves.values())
    gaps = (after - before)[samples.voters].double()
    told = {"losses": [before.mean().item(), after.mean().item()], "temperatures": [one, other]}
    return {"calibrated": told | {"change": gaps.mean().item(), "error": gaps.std().item() / len(gaps) ** 0.5}}


GRID = Grid(
    "conditions",
    ARMS,
    [
        *_cells(_FIRST, SEEDS[:1]),
        *_cells(("robust",), SEEDS[:1], [one for one in SETS if one != _DEGENERATE]),
        *_cells(_PRESETS, SEEDS, ("wnli",)),
        *_cells(_FIRST, SEEDS[1:]),
        *_cells(_LAST, SEEDS[:1]),
        *_cells(_FIRST, SEEDS[:1], ("rte", "cola"), LARGE_BASE),
    ],
    by_prune(usual_metric, calibrated),
)


def over_sets(cells: Sequence[Content]) -> str:
    """What each way of asking brought, over all sets but WNLI; *reliably* is by two standard errors."""
    rows = []
    for (model, arm), same in _by_arm([cell for cell in cells if cell["data"] != _DEGENERATE], "model", "arm"):
        found = [(cell["calibrated"]["change"], 2 * cell["calibrated"]["error"]) for cell in same]
        loss = f"{mean(one for one, _ in found):+.4f}"
        reliably = f"{sum(one < -noise for one, noise in found)}, {sum(one > noise for one, noise in found)}"
        worse = str(sum(judgement(cell) is FindingVerdict.LOSS for cell in same))
        figures = [removed(same), loss, reliably, spread(list(map(_points, same))), worse]
        rows.append([model, f"`{arm}`", f"{len(same)}", *figures])
    head = ["model", "arm", "passes", "removed", "loss", "reliably lower, higher", "points", "called worse"]
    return table(head, rows)


def by_set(cells: Sequence[Content]) -> str:
    """What went and the change in points, by set and arm."""
    arms = [arm for arm in ARMS if any(cell["arm"] == arm for cell in cells)]
    rows = []
    for (model, data), of_set in grouped(sorted(cells, key=_place), "model", "data").items():
        each = [where(of_set, arm=arm) for arm in arms]
        told = [f"{removed(same)}, {mean(map(_points, same)):+.2f}" if same else NONE for same in each]
        rows.append([data, model, *told])
    return table(["set", "model", *(f"`{arm}`" for arm in arms)], rows)


def _by_arm(cells: Sequence[Content], *names: str) -> list[tuple[tuple[Any, ...], list[Content]]]:
    ordered = sorted(cells, key=lambda cell: (cell["model"], list(ARMS).index(cell["arm"])))
    return list(grouped(ordered, *names).items())


def _place(cell: Content) -> tuple[str, int]:
    return cell["model"], SETS.index(cell["data"])


def _points(cell: Content) -> float:
    """The change of the metric on held-out rows, in points."""
    return POINT * float(cell["report"]["comparison"]["test"]["differences"][cell["metric"]]["value"])
