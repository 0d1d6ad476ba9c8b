"""Measure what dropping layers costs, and write the document from all cells.

    python -m benchmarks.layers --source ../shared/data [--only 'cola-*'] [--limit 4]

It may be stopped and started again at any time: existing cells are not measured again, and a cell that was stopped goes on with
the training that was interrupted.
"""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.compress import reading
from benchmarks.layers.cell import measure
from benchmarks.layers.document import DOCUMENT, RESULTS, document_of, read_cells
from benchmarks.layers.grid import cells
from benchmarks.running import Place, measure_missing


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
    measure_missing(chosen, Place(source, home, results, threads, bfloat16), measure, limit)
    found = read_cells(results)
    if found:
        output.write_text(document_of(found, reading.read_cells(reading.RESULTS)), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
