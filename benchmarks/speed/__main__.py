"""How fast a pass is: whole forward passes against each technique added in turn, pairwise and in one run.

    make bench

makes sets and checkpoints, and runs

    python -m benchmarks.speed --source SOURCES --checkpoints DIR --output benchmarks

which writes ``RESULTS.md`` and, in ``results/``, all figures as JSON and a picture; then every verdict is compared with
the naive reference (:mod:`benchmarks.speed.verdicts`). A quick look:
``make bench OUTPUT=var/quick SETS=cola BENCH="--rows 300 --rounds 1"``.
"""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from transformers import AutoTokenizer

from axformer.devices import resolve_device
from benchmarks.rows import Row, read_rows
from benchmarks.speed.machine import environment
from benchmarks.speed.record import Result, SetResult
from benchmarks.speed.results import write_result
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
from benchmarks.speed.steps import PAD_TO, STEPS, Step

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
    """
    written = write_set(speed_set, source, setting.data, rows)
    print(f"{speed_set.title}: {written:,} rows", flush=True)
    found = run_rounds(ask, setting, steps, rounds, whole=whole)
    reference = reference_of(found)
    return SetResult(
        name=speed_set.name,
        title=speed_set.title,
        rows=written,
        is_whole=written == speed_set.rows,
        tokens=_tokens(setting),
        trace=reference.trials,
        rounds=[[run.model_copy(update={"trials": []}) for run in runs] for runs in found],
        flops=count_operations(ask, setting, steps, reference.trials),
        agreements=agreements_of(found, reference),
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
    rows: Annotated[
        int | None, typer.Option(min=2, help="take that many rows of each set; all where not given")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="how often the steps take turns")] = ROUNDS,
    whole: Annotated[bool, typer.Option(help="run whole forward passes to the end, not some trials of them")] = False,
    techniques: Annotated[
        bool, typer.Option(help="measure the steps on the way, each once, not the last alone")
    ] = True,
    device: str = "cpu",
    threads: int = os.cpu_count() or 1,
) -> None:
    """Measure how fast a pass is."""
    device = resolve_device(device)
    steps = [step for step in STEPS if techniques or step.every_round]
    command = " ".join(["python -m benchmarks.speed", *sys.argv[1:]])
    about = environment(device, threads)
    for speed_set in chosen_sets(only):
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="axformer-bench-") as work:
            setting = Setting(checkpoints / speed_set.name, Path(work) / f"{speed_set.name}.jsonl", device, threads)
            found = measure_set(ask_child, speed_set, source, setting, steps, rounds, rows=rows, whole=whole)
        minutes = (time.monotonic() - start) / 60
        write_result(Result(command=command, environment=about, minutes=minutes, set=found), output)
        print(f"{output / 'RESULTS.md'} is written", flush=True)


if __name__ == "__main__":
    typer.run(main)
