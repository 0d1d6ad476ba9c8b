"""The one command of the benchmarks.

    python -m benchmarks list                                                   the grids, and how many cells each has
    python -m benchmarks run rank --only 'sst2-*' --minutes 30 --source ../shared/data
    python -m benchmarks page                                                   write the generated pages of docs/

Cells are written to ``benchmarks/results/GRID/CELL.json``; sets, checkpoints and logs stay in HOME. A trial run, with
``--rows``, keeps its cells in HOME too.
"""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.harness import RESULTS, Grid, Place, read_cells
from benchmarks.pages import GRIDS, write_pages
from benchmarks.tables import counted

app = typer.Typer(help="Measure cells, and write pages from them.", add_completion=False)


def _grid(name: str) -> Grid:
    if name not in GRIDS:
        raise typer.BadParameter(f"there is no grid '{name}'; there are {', '.join(GRIDS)}")
    grid: Grid = GRIDS[name].GRID
    return grid


@app.command("list")
def show(grid: Annotated[str | None, typer.Argument(help="a grid, whose missing cells are named")] = None) -> None:
    """Say which cells there are."""
    if grid is None:
        for name, module in GRIDS.items():
            print(f"{name}: {counted(module.GRID, read_cells(name))}")
    else:
        for cell in _grid(grid).missing((), Place(Path(), Path())):
            print(cell.name)


@app.command()
def run(
    grid: Annotated[str, typer.Argument(help="the grid to measure; `list` names them")],
    source: Annotated[Path, typer.Option(help="directory of the public sets")],
    only: Annotated[list[str] | None, typer.Option(help="pattern of a cell's name; may be repeated")] = None,
    minutes: Annotated[float, typer.Option(min=0, help="begin no further cell after that")] = 60.0,
    again: Annotated[bool, typer.Option("--again", help="measure also the cells that are there")] = False,
    home: Annotated[Path, typer.Option(help="where sets and checkpoints are kept")] = Path("var/bench"),
    rows: Annotated[int | None, typer.Option(min=20, help="most rows of each part of a set, for a trial run")] = None,
    threads: Annotated[int, typer.Option(min=1, help="of trainings and of runs")] = 1,
    bfloat16: Annotated[bool, typer.Option(help="fine-tune checkpoints in bfloat16")] = False,
    device: Annotated[str, typer.Option(help="what trains and runs; only `compress` can do without the CPU")] = "cpu",
) -> None:
    """Measure the missing cells of a grid, as many as the minutes allow."""
    chosen = _grid(grid)
    if device != "cpu" and grid != "compress":
        raise typer.BadParameter(
            f"grid '{grid}' is measured on the CPU; leave out --device {device}, or measure compress"
        )
    home, results = (home, RESULTS) if rows is None else (home / f"rows-{rows}", home / f"rows-{rows}" / "cells")
    place = Place(source.resolve(), home.resolve(), results.resolve(), rows, threads, bfloat16, device)
    try:
        succeeded = chosen.run(only or (), place, minutes, again=again)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if not succeeded:
        raise typer.Exit(1)


@app.command()
def page() -> None:
    """Write the generated pages and their pictures from all cells."""
    write_pages()


if __name__ == "__main__":
    app()
