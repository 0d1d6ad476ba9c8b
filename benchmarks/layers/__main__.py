"""Measure what dropping layers costs, and write the document from all cells.

    python -m benchmarks.layers --source ../shared/data [--only 'cola-*'] [--limit 4]

It may be stopped and started again at any time: existing cells are not measured again, and a cell that was stopped goes on with
the training that was interrupted.
"""

from pathlib import Path

from benchmarks.compress import reading
from benchmarks.layers.cell import measure
from benchmarks.layers.document import DOCUMENT, RESULTS, document_of, read_cells, write_pictures
from benchmarks.layers.grid import cells
from benchmarks.running import Experiment, resumable, run_command


def _write(results: Path, output: Path) -> None:
    if found := read_cells(results):
        images = output.parent / "images"
        images.mkdir(parents=True, exist_ok=True)
        write_pictures(found, images)
        output.write_text(document_of(found, reading.read_cells(reading.RESULTS)), encoding="utf-8")


if __name__ == "__main__":
    run_command(Experiment(cells, resumable(measure), RESULTS, DOCUMENT, _write))
