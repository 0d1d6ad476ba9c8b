"""Train the checkpoints whose results are reported, one after another, and measure each on held-out rows.

    python -m benchmarks.sets.catalog --source SOURCES --output SETS
    python -m benchmarks.train_checkpoints --sets SETS --output DIR

leaves ``DIR/NAME`` (the checkpoint), ``DIR/NAME.json`` (its figures) and ``DIR/NAME.log``. What is there already is kept, so
the program may be stopped and started again.
"""

import shutil
import time
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.checkpoints import Checkpoint, chosen
from benchmarks.commands import run_logged


def make(checkpoint: Checkpoint, sets: Path, output: Path, threads: int, bfloat16: bool) -> bool:
    """Train a checkpoint and measure it, each if it was not done before; gives whether both stand now."""
    home, log = output / checkpoint.name, output / f"{checkpoint.name}.log"
    if not home.is_dir():
        partial = output / f"{checkpoint.name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        if not run_logged([*_training(checkpoint, sets, partial, bfloat16), f"--threads={threads}"], log):
            return False
        partial.rename(home)
    figures = output / f"{checkpoint.name}.json"
    return figures.is_file() or run_logged([*_measuring(checkpoint, sets, home, figures), f"--threads={threads}"], log)


def _training(checkpoint: Checkpoint, sets: Path, home: Path, bfloat16: bool) -> list[str]:
    program = (
        ["benchmarks.finetune", f"--base={checkpoint.family}"]
        if checkpoint.is_packaged
        else ["benchmarks.from_scratch", f"--family={checkpoint.family}"]
    )
    return [
        "-m",
        *program,
        f"--task={checkpoint.task}",
        f"--train={checkpoint.rows(sets, 'train')}",
        f"--output={home}",
        f"--epochs={checkpoint.epochs}",
        f"--seed={checkpoint.seed}",
        f"--max-length={checkpoint.max_length}",
        "--bfloat16" if bfloat16 else "--no-bfloat16",
    ]


def _measuring(checkpoint: Checkpoint, sets: Path, home: Path, figures: Path) -> list[str]:
    return [
        *["-m", "benchmarks.figures", str(home)],
        f"--task={checkpoint.task}",
        f"--data={checkpoint.rows(sets, 'test')}",
        f"--output={figures}",
        f"--max-length={checkpoint.max_length}",
    ]


def main(
    sets: Annotated[Path, typer.Option(help="directory of the prepared sets")],
    output: Annotated[Path, typer.Option(help="directory for the checkpoints")],
    only: Annotated[list[str] | None, typer.Option(help="a checkpoint to train; may be repeated")] = None,
    threads: int = 1,
    bfloat16: Annotated[bool, typer.Option(help="train in bfloat16, where the processor multiplies it fast")] = False,
) -> None:
    """Train and measure the checkpoints that are not there yet."""
    failed = []
    for checkpoint in chosen(only):
        start = time.monotonic()
        done = make(checkpoint, sets, output, threads, bfloat16)
        seconds = time.monotonic() - start
        print(f"{checkpoint.name}: {'done' if done else 'FAILED, see its log'}, {seconds:.0f} s", flush=True)
        failed += [] if done else [checkpoint.name]
    if failed:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
