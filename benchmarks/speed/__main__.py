"""How fast a pass is: whole forward passes against each technique added in turn, pairwise and in one run.

    make bench

makes sets and checkpoints, and runs

    python -m benchmarks.speed --source SOURCES --checkpoints DIR --output benchmarks

which writes ``RESULTS.md`` and, in ``results/``, all figures as JSON and a picture. A quick look:
``make bench OUTPUT=var/bench BENCH="--only cola --rows 300 --rounds 1 --no-verdicts"``.
"""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from transformers import AutoTokenizer

from axformer.devices import resolve_device
from benchmarks.rows import Row, read_rows
from benchmarks.speed.machine import environment
from benchmarks.speed.plot import draw
from benchmarks.speed.record import Cut, Result, SetResult
from benchmarks.speed.report import write_report
from benchmarks.speed.rounds import (
    Ask,
    Setting,
    agreements_of,
    ask_child,
    compare_on_cut,
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
    """Measure everything on one set but the verdicts on its cut.

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
        cut=None,
    )


def measure_cut(ask: Ask, speed_set: SpeedSet, source: Path, setting: Setting, rows: int | None, oracle: Path) -> Cut:
    """Compare verdicts on the set's cut, or on ``rows`` where those are fewer."""
    cut = setting.data.with_name(f"{speed_set.name}-cut.jsonl")
    written = write_set(speed_set, source, cut, min(speed_set.cut, rows or speed_set.cut))
    found = oracle if oracle.is_file() else None
    if found is None:
        print(f"  the naive reference {oracle} is not there; verdicts are compared with whole forwards of our own")
    return compare_on_cut(ask, replace(setting, data=cut), STEPS, written, found)


def write_results(result: Result, output: Path) -> None:
    """Write the report, the figures and the picture."""
    directory = output / "results"
    directory.mkdir(parents=True, exist_ok=True)
    for one in result.sets:
        alone = result.model_copy(update={"sets": [one]})
        (directory / f"{one.name}.json").write_text(alone.model_dump_json(indent=1) + "\n", encoding="utf-8")
    (directory / "speed.svg").write_text(draw(result.sets), encoding="utf-8")
    (output / "RESULTS.md").write_text(write_report(result), encoding="utf-8")


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
    oracle: Annotated[Path, typer.Option(help="the naive reference, where it is at hand")] = Path(
        "../shared/oracle/naive_axformer.py"
    ),
    only: Annotated[list[str] | None, typer.Option(help="a set to measure on; may be repeated")] = None,
    rows: Annotated[
        int | None, typer.Option(min=2, help="take that many rows of each set; all where not given")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="how often the steps take turns")] = ROUNDS,
    whole: Annotated[bool, typer.Option(help="run whole forward passes to the end, not some trials of them")] = False,
    verdicts: Annotated[bool, typer.Option(help="compare verdicts on a cut of each set")] = True,
    techniques: Annotated[
        bool, typer.Option(help="measure the steps on the way, each once, not the last alone")
    ] = True,
    device: str = "cpu",
    threads: int = os.cpu_count() or 1,
) -> None:
    """Measure how fast a pass is."""
    device = resolve_device(device)
    about, sets, start = environment(device, threads), [], time.monotonic()
    steps = [step for step in STEPS if techniques or step.every_round]
    command = " ".join(["python -m benchmarks.speed", *sys.argv[1:]])
    for speed_set in chosen_sets(only):
        with tempfile.TemporaryDirectory(prefix="axformer-bench-") as work:
            data = Path(work) / f"{speed_set.name}.jsonl"
            setting = Setting(checkpoints / speed_set.name, data, device, threads)
            found = measure_set(ask_child, speed_set, source, setting, steps, rounds, rows=rows, whole=whole)
            cut = measure_cut(ask_child, speed_set, source, setting, rows, oracle) if verdicts else None
            sets.append(found.model_copy(update={"cut": cut}))
        minutes = (time.monotonic() - start) / 60
        write_results(Result(command=command, environment=about, minutes=minutes, sets=sets), output)
        print(f"{output / 'RESULTS.md'} is written", flush=True)


if __name__ == "__main__":
    typer.run(main)
