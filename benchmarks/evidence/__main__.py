"""Measure the cells that are not there yet, then write the document of all that are.

    python -m benchmarks.evidence --source ../shared/data [--only 'rte-minilm-*'] [--limit 4] [--rows 200]

leaves ``RESULTS/CELL.json`` for each, and sets, checkpoints and logs in HOME. It may be stopped and started again at any time,
also on another machine that has the results: a cell that is there is not measured again, unless it was measured otherwise than
is asked for now, and a failed one stops no other. A trial run, with ``--rows``, keeps what it measures in HOME.
"""

import time
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.evidence.cell import Place, run_cell
from benchmarks.evidence.document import document_of
from benchmarks.evidence.grid import ARMS, cells
from benchmarks.evidence.reading import RESULTS, read_cells
from benchmarks.evidence.standing import stands


def main(
    source: Annotated[Path, typer.Option(help="directory of the public sets")],
    home: Annotated[Path, typer.Option(help="where sets and checkpoints are kept")] = Path("var/evidence"),
    results: Annotated[Path, typer.Option(help="where the cells are kept")] = RESULTS,
    output: Annotated[Path | None, typer.Option(help="document to write")] = None,
    arm: Annotated[list[str] | None, typer.Option(help="knobs to measure; may be repeated, all where none is")] = None,
    only: Annotated[list[str] | None, typer.Option(help="pattern of a cell's name; may be repeated")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="most cells to measure now")] = None,
    rows: Annotated[int | None, typer.Option(min=20, help="most rows of each part of a set, for a trial run")] = None,
    threads: int = 2,
    bfloat16: Annotated[bool, typer.Option(help="train in bfloat16, where the processor multiplies it fast")] = False,
) -> None:
    """Measure, and write what was found."""
    try:
        chosen = cells(arm or tuple(ARMS), only or ())
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if rows is not None:
        home = home / f"rows-{rows}"
        results = home / "cells"
    place = Place(source, home, results, rows, threads, bfloat16)
    missing = [cell for cell in chosen if not stands(place.file(cell))]
    print(f"{len(chosen) - len(missing)} of {len(chosen)} cells are there", flush=True)
    failed = False
    for cell in missing[:limit]:
        start = time.monotonic()
        outcome = run_cell(cell, place)
        failed |= outcome.startswith("FAILED")
        print(f"{cell.name}: {outcome}, {time.monotonic() - start:.0f} s", flush=True)
    found = read_cells(place.results)
    if output is not None and found:
        output.write_text(document_of(found, planned=len(cells())), encoding="utf-8")
    if failed:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
