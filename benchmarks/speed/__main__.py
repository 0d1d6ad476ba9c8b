"""How fast a pass is: whole forward passes against each technique added in turn, pairwise and in one run.

    make bench

makes sets and checkpoints, and runs

    python -m benchmarks.speed --source SOURCES --checkpoints DIR --oracle ORACLE --output benchmarks

which writes ``RESULTS.md`` and, in ``results/``, all figures as JSON and a picture. On each whole set it measures the
baselines and the steps that targets are for; on a cut of it every technique, with all verdicts beside those of the naive
reference. A quick look:
``make bench OUTPUT=var/quick SETS=cola BENCH="--rows 300 --rounds 1"``.
"""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from transformers import AutoTokenizer

from axformer.devices import resolve_device
from benchmarks.rows import Row, read_rows
from benchmarks.speed.agreement import oracle_trials
from benchmarks.speed.machine import environment
from benchmarks.speed.record import Result, SetResult
from benchmarks.speed.results import write_cut, write_result
from benchmarks.speed.rounds import (
    Ask,
    Setting,
    agreements_of,
    ask_child,
    count_operations,
    reference_of,
    run_rounds,
)
from benchmarks.speed.sets import SpeedSet, chosen_sets, write_set
from benchmarks.speed.steps import EARLY, PAD_TO, STEPS, TARGETED, Step, step_named

ROUNDS = 3


def measure_set(
    ask: Ask,
    speed_set: SpeedSet,
    source: Path,
    setting: Setting,
    steps: Sequence[Step],
    rounds: int,
    *,
    rows: int | None,
    whole: bool,
    oracle: Path | None = None,
    by_kind: bool = False,
) -> SetResult:
    """Measure everything on one set.

    Args:
        ask: does one measurement.
        speed_set: which set.
        source: directory of the public sets.
        setting: where the rows are written, and with what they are measured.
        steps: what is measured, slowest first.
        rounds: how many.
        rows: take that many of the set; null takes all.
        whole: run steps of whole forward passes to the end too.
        oracle: the naive reference that verdicts are compared with; null takes the slowest step that runs a whole pass.
        by_kind: time the kernels of the steps that targets are for one by one.
    """
    written = write_set(speed_set, source, setting.data, rows)
    print(f"{speed_set.title}: {written:,} rows", flush=True)
    found = run_rounds(ask, setting, steps, rounds, whole=whole)
    own = reference_of(found)
    reference, name = own.trials, own.step
    if oracle is not None:
        reference, name = oracle_trials(oracle, setting.checkpoint, setting.data, setting.threads), oracle.name
    return SetResult(
        name=speed_set.name,
        title=speed_set.title,
        rows=written,
        is_whole=written == speed_set.rows,
        tokens=_tokens(setting),
        trace=own.trials,
        rounds=[[run.model_copy(update={"trials": []}) for run in runs] for runs in found],
        flops=count_operations(ask, setting, steps, own.trials),
        agreements=agreements_of(found, reference, name),
        alone={EARLY: ask(setting.asked(step_named(EARLY), by_kind=True))} if by_kind else {},
    )


def _tokens(setting: Setting) -> int:
    tokenizer = AutoTokenizer.from_pretrained(setting.checkpoint)
    rows = read_rows(setting.data, Row)
    pairs = [row.text_pair for row in rows] if rows[0].text_pair is not None else None
    ids = tokenizer([row.text for row in rows], pairs, truncation=True, max_length=PAD_TO)["input_ids"]
    return sum(map(len, ids))


def main(
    source: Annotated[Path, typer.Option(help="directory of the public sets")],
    checkpoints: Annotated[Path, typer.Option(help="directory of the fine-tuned checkpoints")],
    output: Annotated[Path, typer.Option(help="directory for RESULTS.md and results/")],
    only: Annotated[list[str] | None, typer.Option(help="a set to measure on; may be repeated")] = None,
    oracle: Annotated[Path, typer.Option(help="the naive reference, where it is at hand")] = Path(
        "../shared/oracle/naive_axformer.py"
    ),
    rows: Annotated[int | None, typer.Option(min=2, help="take that many rows of each set and cut at most")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="how often the steps take turns")] = ROUNDS,
    whole: Annotated[bool, typer.Option(help="run whole forward passes to the end, not some trials of them")] = False,
    device: str = "cpu",
    threads: int = os.cpu_count() or 1,
) -> None:
    """Measure how fast a pass is."""
    device = resolve_device(device)
    if not oracle.is_file():
        print(f"the naive reference {oracle} is not there; verdicts are compared with those of a step of our own")
    command = " ".join(["python -m benchmarks.speed", *sys.argv[1:]])
    about = environment(device, threads)

    def result(speed_set: SpeedSet, steps: Sequence[Step], rounds: int, rows: int | None, **more: Any) -> Result:
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="axformer-bench-") as work:
            setting = Setting(checkpoints / speed_set.name, Path(work) / f"{speed_set.name}.jsonl", device, threads)
            found = measure_set(ask_child, speed_set, source, setting, steps, rounds, rows=rows, whole=whole, **more)
        return Result(command=command, environment=about, minutes=(time.monotonic() - start) / 60, set=found)

    chosen, steps = chosen_sets(only), TARGETED
    for speed_set in chosen:
        write_result(result(speed_set, steps, rounds, rows), output)
    known = {"oracle": oracle if oracle.is_file() else None, "by_kind": device == "cpu"}
    for speed_set in chosen:
        write_cut(result(speed_set, STEPS, 1, min(speed_set.cut, rows or speed_set.cut), **known), output)
    print(f"{output / 'RESULTS.md'} is written", flush=True)


if __name__ == "__main__":
    typer.run(main)
