"""Analyze where models are redundant on public sets, and write the document with its pictures from all cells.

    python -m benchmarks.redundancy --source ../shared/data [--only '*-minilm-*'] [--limit 4]

It may be stopped and started again at any time: existing cells are not measured again.
"""

from pathlib import Path

from benchmarks.redundancy.cell import measure_cell
from benchmarks.redundancy.document import DOCUMENT, RESULTS, document_of, read_cells, write_pictures
from benchmarks.redundancy.grid import cells
from benchmarks.running import Experiment, run_command


def _write(results: Path, output: Path) -> None:
    if found := read_cells(results):
        images = output.parent / "images"
        images.mkdir(parents=True, exist_ok=True)
        write_pictures(found, images)
        output.write_text(document_of(found), encoding="utf-8")


if __name__ == "__main__":
    run_command(Experiment(cells, measure_cell, RESULTS, DOCUMENT, _write))
