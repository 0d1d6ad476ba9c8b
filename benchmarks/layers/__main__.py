"""Measure what dropping layers costs, and write the document from all cells.

    python -m benchmarks.layers --source ../shared/data [--only 'cola-*'] [--limit 4]

It may be stopped and started again at any time: existing cells are not measured again, and a cell that was stopped goes on with
the training that was interrupted.
"""

import shutil
import time
from pathlib import Path
from typing import Annotated

import torch
import typer

from benchmarks.kept import prepare_set, write_whole
from benchmarks.layers.cell import measure
from benchmarks.layers.document import DOCUMENT, RESULTS, document_of, read_cells
from benchmarks.layers.grid import cells
from benchmarks.train_checkpoints import make


def main(
    source: Annotated[Path, typer.Option(help="directory of the public sets")],
    home: Annotated[Path, typer.Option(help="where sets and checkpoints are kept")] = Path("var/evidence"),
    results: Annotated[Path, typer.Option(help="where the cells are kept")] = RESULTS,
    output: Annotated[Path, typer.Option(help="document to write")] = DOCUMENT,
    only: Annotated[list[str] | None, typer.Option(help="pattern of a cell's name; may be repeated")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="most cells to measure now")] = None,
    threads: Annotated[int, typer.Option(min=1, help="of trainings and of runs")] = 1,
    bfloat16: Annotated[bool, typer.Option(help="fine-tune checkpoints in bfloat16")] = False,
) -> None:
    """Measure the missing cells and write the document."""
    try:
        chosen = cells(only or ())
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    torch.set_num_threads(threads)
    missing = [cell for cell in chosen if not (results / f"{cell.name}.json").is_file()]
    print(f"{len(chosen) - len(missing)} of {len(chosen)} cells are there", flush=True)
    for cell in missing[:limit]:
        started, checkpoint = time.monotonic(), cell.checkpoint
        prepare_set(checkpoint.data, source, home / "sets")
        if not make(checkpoint, home / "sets", home / "checkpoints", threads, bfloat16):
            print(f"{cell.name}: FAILED to train; see {home / 'checkpoints' / checkpoint.name}.log", flush=True)
            continue
        state = home / "layers" / cell.name
        content = measure(cell, home / "checkpoints" / checkpoint.name, home / "sets", state)
        write_whole(results / f"{cell.name}.json", content)
        shutil.rmtree(state, ignore_errors=True)
        print(f"{cell.name}: done, {time.monotonic() - started:.0f} s", flush=True)
    found = read_cells(results)
    if found:
        output.write_text(document_of(found), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
