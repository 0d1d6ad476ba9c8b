"""Does a pass remove more, and harm nothing, if more is asked of an acceptance than the paper does?

Losses on held-out rows are those at each model's own best temperature, fitted on these rows: doubt alone is no gain there. One
seed of every set comes first; then WNLI, whose extremes the paper reports, under the other presets; more seeds; and MPNet-base.
"""

from collections import Counter
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
from benchmarks.tables import POINT, grouped, spread, table

SETS = ("wnli", "squad", "sms", "rte", "ud-upos", "sst2", "cola", "ag-news")
_EVERY: Mapping[str, Any] = {"conditions": ["temperature", "stable", "metric"]}
_ASKED: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "temperature": {"conditions": ["temperature"]},
    "stable": {"conditions": ["temperature", "stable"]},
    "every": _EVERY,
    "refit": {**_EVERY, "repair": "refit"},
    "ranked": {**_EVERY, "order": "importance", "neuron_groups": "ranked"},
}
_PRESETS = ("published", "robust")


def _arm(preset: str, **knobs: Any) -> Arm:
    return Arm({"accept_poor_model": True, **knobs}, preset, rows={"validation": 400})


ARMS = {name: _arm("paper", **knobs) for name, knobs in _ASKED.items()} | {name: _arm(name) for name in _PRESETS}
_FIRST = [name for name in _ASKED if name != "ranked"]


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
        *_cells(_PRESETS, SEEDS, ("wnli",)),
        *_cells(_FIRST, SEEDS[1:]),
        *_cells(("ranked",), SEEDS[:1]),
        *_cells(_FIRST, SEEDS[:1], ("rte", "cola"), LARGE_BASE),
    ],
    by_prune(usual_metric, calibrated),
)


def by_arm(cells: Sequence[Content]) -> str:
    """What each way of asking brought, over all sets of a model and by set; *reliably* is by two standard errors."""
    order = {"every set": "", **{one: one for one in SETS}}
    twice = [{**cell, "data": data} for cell in cells for data in ("every set", cell["data"])]
    twice.sort(key=lambda cell: (cell["model"], order[cell["data"]], list(ARMS).index(cell["arm"])))
    rows = []
    for (model, data, arm), same in grouped(twice, "model", "data", "arm").items():
        found = [(cell["calibrated"]["change"], 2 * cell["calibrated"]["error"]) for cell in same]
        points = [POINT * cell["report"]["comparison"]["test"]["differences"][cell["metric"]]["value"] for cell in same]
        told = Counter(map(judgement, same))
        loss = f"{mean(one for one, _ in found):+.4f}"
        reliably = f"{sum(one < -noise for one, noise in found)}, {sum(one > noise for one, noise in found)}"
        verdicts = f"{told[FindingVerdict.GAIN]}, {told[FindingVerdict.LOSS]}"
        rows.append([model, data, f"`{arm}`", f"{len(same)}", removed(same), loss, reliably, spread(points), verdicts])
    head = ("model", "set", "arm", "passes", "removed", "loss", "reliably lower, higher", "points", "gains, losses")
    return table(head, rows)
