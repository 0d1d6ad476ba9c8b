"""Analyze where models are redundant on public sets, and write the document with its pictures from all cells.

    python -m benchmarks.redundancy --source ../shared/data [--only '*-minilm-*'] [--limit 4]

It may be stopped and started again at any time: existing cells are not measured again.
"""

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.kept import prepare_set, write_whole
from benchmarks.redundancy.cell import measure, write_pretrained
from benchmarks.redundancy.document import DOCUMENT, RESULTS, document_of, read_cells, write_pictures
from benchmarks.redundancy.grid import Cell, cells
from benchmarks.train_checkpoints import make


def main(
    source: Annotated[Path, typer.Option(help="directory of the public sets")],
    home: Annotated[Path, typer.Option(help="where sets and checkpoints are kept")] = Path("var/evidence"),
    results: Annotated[Path, typer.Option(help="where the cells are kept")] = RESULTS,
    output: Annotated[Path, typer.Option(help="document to write")] = DOCUMENT,
    only: Annotated[list[str] | None, typer.Option(help="pattern of a cell's name; may be repeated")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="most cells to measure now")] = None,
    threads: Annotated[int, typer.Option(min=1, help="of trainings and of analyses")] = 1,
    bfloat16: Annotated[bool, typer.Option(help="fine-tune checkpoints in bfloat16")] = False,
) -> None:
    """Measure the missing cells and write the document."""
    try:
        chosen = cells(only or ())
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    os.environ["OMP_NUM_THREADS"] = str(threads)  # of the processes that are started here
    missing = [cell for cell in chosen if not (results / f"{cell.name}.json").is_file()]
    print(f"{len(chosen) - len(missing)} of {len(chosen)} cells are there", flush=True)
    for cell in missing[:limit]:
        started = time.monotonic()
        prepare_set(cell.checkpoint.data, source, home / "sets")
        checkpoint = _checkpoint(cell, home, threads, bfloat16)
        if checkpoint is None:
            print(f"{cell.name}: FAILED to train; see {home / 'checkpoints' / cell.checkpoint.name}.log", flush=True)
            continue
        log = home / "redundancy" / f"{cell.name}.log"
        write_whole(results / f"{cell.name}.json", measure(cell, checkpoint, home / "sets", log))
        print(f"{cell.name}: done, {time.monotonic() - started:.0f} s", flush=True)
    found = read_cells(results)
    if found:
        write_pictures(found, output.parent / "images")
        output.write_text(document_of(found), encoding="utf-8")


def _checkpoint(cell: Cell, home: Path, threads: int, bfloat16: bool) -> Path | None:
    """The model of a cell, made once; None if it cannot be trained."""
    if not cell.is_pretrained:
        is_made = make(cell.checkpoint, home / "sets", home / "checkpoints", threads, bfloat16)
        return home / "checkpoints" / cell.checkpoint.name if is_made else None
    directory = home / "pretrained" / f"{cell.checkpoint.data}-{cell.checkpoint.family}"
    if not directory.is_dir():
        directory.parent.mkdir(parents=True, exist_ok=True)
        write_pretrained(cell, home / "sets", directory)
    return directory


if __name__ == "__main__":
    typer.run(main)
