"""Measure the missing cells, then write the document from all cells.

    python -m benchmarks.compress --source ../shared/data [--only 'sst2-minilm-*'] [--limit 4]
    python -m benchmarks.compress.document > docs/compress-results.md

The first command writes ``RESULTS/CELL.json`` for each cell, and sets and checkpoints to HOME. It may be stopped and started
again at any time: existing cells are not measured again, unless the method has changed since.
"""

import time
from pathlib import Path
from typing import Annotated

import torch
import typer

from benchmarks.compress.cell import Place, run_cell
from benchmarks.compress.document import DOCUMENT, document_of
from benchmarks.compress.grid import cells
from benchmarks.compress.reading import RESULTS, read_cells


def main(
    source: Annotated[Path, typer.Option(help="directory of the public sets")],
    home: Annotated[Path, typer.Option(help="where sets and checkpoints are kept")] = Path("var/evidence"),
    results: Annotated[Path, typer.Option(help="where the cells are kept")] = RESULTS,
    output: Annotated[Path, typer.Option(help="document to write")] = DOCUMENT,
    only: Annotated[list[str] | None, typer.Option(help="pattern of a cell's name; may be repeated")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="most cells to measure now")] = None,
    threads: Annotated[int, typer.Option(min=1, help="of trainings and of runs")] = 1,
    bfloat16: Annotated[bool, typer.Option(help="train in bfloat16, where the processor multiplies it fast")] = False,
) -> None:
    """Measure the missing cells and write the document."""
    try:
        chosen = cells(only or ())
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    torch.set_num_threads(threads)
    place = Place(source, home, results, threads, bfloat16)
    missing = [cell for cell in chosen if not place.has(cell)]
    print(f"{len(chosen) - len(missing)} of {len(chosen)} cells are there", flush=True)
    failed = False
    for cell in missing[:limit]:
        started = time.monotonic()
        outcome = run_cell(cell, place)
        failed |= outcome.startswith("FAILED")
        print(f"{cell.name}: {outcome}, {time.monotonic() - started:.0f} s", flush=True)
    found = read_cells(place.results)
    if found:
        output.write_text(document_of(found), encoding="utf-8")
    if failed:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
