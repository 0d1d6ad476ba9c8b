"""Whether the fast passes decide as the naive reference does: every verdict, on a cut of each set, in both precisions.

    python -m benchmarks.speed.verdicts --source SOURCES --checkpoints DIR --output benchmarks

writes ``results/SET-verdicts.json`` and adds them to ``RESULTS.md``. Nothing is timed, so other work may run beside.
"""

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from axformer.devices import resolve_device
from benchmarks.speed.machine import commit
from benchmarks.speed.record import Cut
from benchmarks.speed.results import write_cut
from benchmarks.speed.rounds import Ask, Setting, ask_child, compare_with_whole
from benchmarks.speed.sets import SpeedSet, chosen_sets, write_set
from benchmarks.speed.steps import STEPS


def compare_set(
    ask: Ask, speed_set: SpeedSet, source: Path, setting: Setting, rows: int | None, oracle: Path, command: str
) -> Cut:
    """Compare verdicts on the set's cut, or on ``rows`` where those are fewer.

    Args:
        ask: does one measurement.
        speed_set: which set.
        source: directory of the public sets.
        setting: with what; its data lie where the cut may be written.
        rows: of the cut, at most.
        oracle: the naive reference; where it is not there, whole forwards of our own take its place.
        command: what was called.
    """
    cut = setting.data.with_name(f"{speed_set.name}-cut.jsonl")
    written = write_set(speed_set, source, cut, min(speed_set.cut, rows or speed_set.cut))
    found = oracle if oracle.is_file() else None
    if found is None:
        print(f"the naive reference {oracle} is not there; verdicts are compared with whole forwards of our own")
    name, agreements = compare_with_whole(ask, replace(setting, data=cut), STEPS, found)
    for one in agreements:
        print(
            f"{speed_set.title}, {written} rows, {one.step}: {one.same} of {one.trials} verdicts as {name}", flush=True
        )
    return Cut(
        command=command, commit=commit(), name=speed_set.name, rows=written, reference=name, agreements=agreements
    )


def main(
    source: Annotated[Path, typer.Option(help="directory of the public sets")],
    checkpoints: Annotated[Path, typer.Option(help="directory of the fine-tuned checkpoints")],
    output: Annotated[Path, typer.Option(help="directory for RESULTS.md and results/")],
    oracle: Annotated[Path, typer.Option(help="the naive reference, where it is at hand")] = Path(
        "../shared/oracle/naive_axformer.py"
    ),
    only: Annotated[list[str] | None, typer.Option(help="a set to compare on; may be repeated")] = None,
    rows: Annotated[int | None, typer.Option(min=2, help="take that many rows of each cut at most")] = None,
    device: str = "cpu",
    threads: int = os.cpu_count() or 1,
) -> None:
    """Compare every verdict with the naive reference."""
    device, command = resolve_device(device), " ".join(["python -m benchmarks.speed.verdicts", *sys.argv[1:]])
    for speed_set in chosen_sets(only):
        with tempfile.TemporaryDirectory(prefix="axformer-bench-") as work:
            setting = Setting(checkpoints / speed_set.name, Path(work) / "cut.jsonl", device, threads)
            write_cut(compare_set(ask_child, speed_set, source, setting, rows, oracle, command), output)


if __name__ == "__main__":
    typer.run(main)
