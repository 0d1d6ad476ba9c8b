"""How fast a pass is: whole forward passes against each technique added in turn, pairwise and in one run.

On each whole validation set, as the paper's authors and GLUE cut them, the baselines and the complete pass are measured; on a
cut of it every technique, with all verdicts beside those of the naive reference. Each set stands with the checkpoint that has
not learned from its file. (Four of CoLA's 1,301 sentences stand in the authors' training file too; for speed and verdicts
that is nothing.)
"""

import os
import statistics
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axformer.reporting.environment import describe
from benchmarks.checkpoints import checkpoint_named
from benchmarks.harness import Arm, Cell, CellError, Content, Grid, Place
from benchmarks.rows import write_rows
from benchmarks.sets.parts import label_of, read_labelled, sample
from benchmarks.speed.rounds import (
    Ask,
    Setting,
    agreements_of,
    ask_child,
    count_operations,
    oracle_trials,
    run_rounds,
)
from benchmarks.speed.steps import DYNAMIC, EARLY, PADDED, STEPS, TARGETED, Step
from benchmarks.tables import NONE, table, where

WHOLE, CUT = "whole", "cut"
_ROUNDS = 3
_ORACLE = Path("oracle/naive_axformer.py")
"""The naive reference, beside the directory of the public sets."""


@dataclass(frozen=True)
class SpeedSet:
    """One validation set, named as its checkpoint."""

    title: str
    file: str
    """Below the directory of the public sets."""
    cut: int
    """Rows on which every technique is measured."""
    targets: Mapping[str, float]
    """How many times as fast as each baseline a pass should be, with all rows and two cores."""


SETS = {
    "cola": SpeedSet("CoLA val", "CoLA/val.jsonl", 300, {PADDED: 60, DYNAMIC: 8}),
    "rte": SpeedSet("RTE val", "RTE/val.jsonl", 100, {PADDED: 12, DYNAMIC: 5}),
    "sst2": SpeedSet("SST-2 sentences dev", "SST-2-sentences/dev.jsonl", 200, {PADDED: 25, DYNAMIC: 6}),
}
_OVERHEAD = 1.3
"""Most times the seconds that the counted operations take at the machine's matrix-multiply rate."""


def measure(cell: Cell, _: Arm, place: Place) -> Content:
    """All steps on one set, or on its cut beside the naive reference where that is at hand.

    Raises:
        CellError: the public set is not there.
    """
    speed_set, started = SETS[cell.checkpoint.data], time.monotonic()
    environment = describe("cpu") | {"threads": place.threads, "load_before": round(os.getloadavg()[0], 2)}
    checkpoint = place.trained(cell.checkpoint)
    if not (place.source / speed_set.file).is_file():
        raise CellError(
            f"{place.source / speed_set.file} is not there; name the directory of the public sets by --source"
        )
    with tempfile.TemporaryDirectory(prefix="axformer-bench-") as work:
        setting = Setting(checkpoint, Path(work) / "rows.jsonl", place.threads)
        everything = read_labelled(place.source / speed_set.file)
        most = min(
            len(everything), place.rows or len(everything), speed_set.cut if cell.arm == CUT else len(everything)
        )
        write_rows(setting.data, sample(everything, most, label_of))
        oracle = place.source.parent / _ORACLE
        is_cut = cell.arm == CUT
        found = measure_steps(
            *(ask_child, setting, STEPS if is_cut else TARGETED, 1 if is_cut else _ROUNDS),
            oracle if is_cut and oracle.is_file() else None,
        )
    report = {"title": speed_set.title, "rows": most, "is_whole": most == len(everything), **found}
    return {"report": report | {"environment": environment, "minutes": (time.monotonic() - started) / 60}}


def measure_steps(
    ask: Ask, setting: Setting, steps: Sequence[Step], rounds: int, oracle: Path | None
) -> dict[str, Any]:
    """Rounds, operations and agreements of some steps.

    Args:
        ask: does one measurement.
        setting: on what.
        steps: slowest first.
        rounds: how many.
        oracle: the naive reference that verdicts are compared with; null takes the slowest step that runs a whole pass.
    """
    found = run_rounds(ask, setting, steps, rounds)
    own = next(run for run in found[0] if run.trials)
    reference, name = own.trials, own.step
    if oracle is not None:
        reference, name = oracle_trials(oracle, setting), oracle.name
    kept = [[run.model_copy(update={"trials": []}).model_dump(mode="json") for run in runs] for runs in found]
    return {
        "trace": [trial.model_dump(mode="json") for trial in own.trials],
        "rounds": kept,
        "flops": count_operations(ask, setting, steps, own.trials),
        "agreements": [one.model_dump(mode="json") for one in agreements_of(found, reference, name)],
    }


GRID = Grid(
    "speed",
    {WHOLE: Arm(), CUT: Arm()},
    [Cell(checkpoint_named(name), arm) for arm in (WHOLE, CUT) for name in SETS],
    measure,
)


def _runs(report: Content, step: str) -> dict[int, Content]:
    """A step's runs by round."""
    return {turn: run for turn, runs in enumerate(report["rounds"]) for run in runs if run["step"] == step}


def seconds_of(run: Content, trials: int) -> float:
    """What a pass takes: measured, or the median of single trials times the number of trials."""
    if run["seconds"] is not None:
        return float(run["seconds"])
    return trials * float(statistics.median(one["seconds"] for one in run["evaluations"]))


def ratios(report: Content, step: str, against: str) -> list[float]:
    """How many times as long the other step takes, in each round that has both."""
    ours, theirs, trials = _runs(report, step), _runs(report, against), len(report["trace"])
    return [seconds_of(theirs[turn], trials) / seconds_of(run, trials) for turn, run in ours.items() if turn in theirs]


def overheads(report: Content, step: str) -> list[float]:
    """In each round, seconds over those that the counted operations take at the rate that the same process measured."""
    trials = len(report["trace"])
    return [
        seconds_of(run, trials) * run["rates"]["float32"] / report["flops"][step]
        for run in _runs(report, step).values()
    ]


def spread(values: Iterable[float], form: str) -> str:
    """The median, with the least and the most where there are several."""
    known = list(values)
    if not known:
        return NONE
    told = f"{statistics.median(known):{form}}"
    return told if len(known) == 1 else f"{told} [{min(known):{form}}, {max(known):{form}}]"


def machine(cells: Sequence[Content]) -> str:
    """What the whole sets were measured on: a sentence."""
    about = where(cells, arm=WHOLE)[0]["report"]["environment"]
    rates = [run["rates"]["float32"] / 1e9 for cell in cells for runs in cell["report"]["rounds"] for run in runs]
    return (
        f"{about['device']}, {about['cores']} cores, {about['threads']} threads, PyTorch {about['torch']}, commit "
        f"{about['commit']}; multiplications in float32 ran at {spread(rates, '.0f')} GFLOP/s"
    )


def steps(cells: Sequence[Content]) -> str:
    """The steps, with how many times as fast as padded forward passes each is on the cuts."""
    cuts = where(cells, arm=CUT)
    rows = [
        [step.name, step.adds, *(spread(ratios(cell["report"], step.name, PADDED), ".3g") for cell in cuts)]
        for step in STEPS
    ]
    head = [f"{cell['report']['title']}, {cell['report']['rows']} rows" for cell in cuts]
    return table(["step", "what it adds", *head], rows)


def whole(cells: Sequence[Content]) -> str:
    """The baselines and the complete pass on the whole sets."""
    rows = []
    for cell in where(cells, arm=WHOLE):
        report = cell["report"]
        for step in TARGETED:
            runs = _runs(report, step.name).values()
            seconds = spread([seconds_of(run, len(report["trace"])) for run in runs], ",.1f")
            faster = [_times(cell, step.name, baseline) for baseline in (PADDED, DYNAMIC)]
            flops, share = report["flops"][step.name] / 1e12, 1 / statistics.median(overheads(report, step.name))
            peak = f"{max(run['peak_bytes'] for run in runs) / 1e6:,.0f}"
            rows.append([report["title"], step.name, seconds, *faster, f"{flops:,.1f}", f"{share:.0%}", peak])
    head = ["set", "step", "pass, s", f"times as fast as {PADDED}", f"as {DYNAMIC}", "TFLOP", "of the rate", "peak, MB"]
    return table(head, rows)


def _times(cell: Content, step: str, against: str) -> str:
    found, wanted = ratios(cell["report"], step, against), SETS[cell["data"]].targets[against]
    told = spread(found, ".3g")
    if step != EARLY or not cell["report"]["is_whole"]:
        return told
    return f"{told} (target {wanted:g}: {'met' if statistics.median(found) >= wanted else 'missed'})"


def overhead(cells: Sequence[Content]) -> str:
    """How near the complete pass comes to the rate of the machine: a sentence."""
    found = {cell["report"]["title"]: overheads(cell["report"], EARLY) for cell in where(cells, arm=WHOLE)}
    told = ", ".join(f"{spread(values, '.3g')} on {title}" for title, values in found.items())
    met = sum(statistics.median(values) <= _OVERHEAD for values in found.values())
    return (
        f"The seconds of `{EARLY}` are {told} times those of its operations at that rate. The target, {_OVERHEAD:g}, is met on "
        f"{met} of {len(found)}."
    )


def agreement(cells: Sequence[Content]) -> str:
    """How the verdicts on the cuts compare with those of the naive reference: a sentence."""
    names = {step.name for step in STEPS}
    found = [one for cell in where(cells, arm=CUT) for one in cell["report"]["agreements"] if one["step"] in names]
    whole = [one for one in found if one["same"] is not None]
    same, trials = (sum(one[name] for one in whole) for name in ("same", "trials"))
    apart = max(one["loss_difference"] or 0.0 for one in found)
    references = " and ".join(f"`{name}`" for name in sorted({one["reference"] for one in found}))
    return (
        f"On the cuts, {same:,} of {trials:,} verdicts were those of {references}, over {len(whole)} whole passes, and no mean "
        f"loss that both measured to the end differed by more than {apart:.0e} of it."
    )
