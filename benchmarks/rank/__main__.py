"""Measure ranked pruning beside other ways, and write the document from all cells.

    python -m benchmarks.rank --source ../shared/data [--only 'stsb-*'] [--limit 4]

It may be stopped and started again at any time: existing cells are not measured again, and a cell that was stopped goes on with
the training that was interrupted.
"""

from pathlib import Path

from benchmarks.rank.cell import measure
from benchmarks.rank.document import DOCUMENT, RESULTS, document_of, read_cells
from benchmarks.rank.grid import cells
from benchmarks.running import Experiment, resumable, run_command


def _write(results: Path, output: Path) -> None:
    if found := read_cells(results):
        output.write_text(document_of(found), encoding="utf-8")


if __name__ == "__main__":
    run_command(Experiment(cells, resumable(measure), RESULTS, DOCUMENT, _write))
