"""Measure ranked pruning beside other ways, and write the document from all cells.

    python -m benchmarks.rank --source ../shared/data [--only 'stsb-*'] [--limit 4]

It may be stopped and started again at any time: existing cells are not measured again, and a cell that was stopped goes on with
the training that was interrupted.
"""

from pathlib import Path

from benchmarks.rank.cell import measure
from benchmarks.rank.document import DOCUMENT, document_of
from benchmarks.rank.grid import cells
from benchmarks.rank.pictures import write_pictures
from benchmarks.rank.reading import RESULTS, read_cells
from benchmarks.running import Experiment, resumable, run_command


def _write(results: Path, output: Path) -> None:
    if found := read_cells(results):
        images = output.parent / "images"
        images.mkdir(parents=True, exist_ok=True)
        write_pictures(found, images)
        output.write_text(document_of(found), encoding="utf-8")


if __name__ == "__main__":
    run_command(Experiment(cells, resumable(measure), RESULTS, DOCUMENT, _write))
