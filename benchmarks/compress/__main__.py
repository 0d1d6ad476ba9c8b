"""Measure the missing cells, then write the document from all cells.

    python -m benchmarks.compress --source ../shared/data [--only 'sst2-minilm-*'] [--limit 4]
    python -m benchmarks.compress.document > docs/compress-results.md

The first command writes ``RESULTS/CELL.json`` for each cell, and sets and checkpoints to HOME. It may be stopped and started
again at any time: existing cells are not measured again, unless the method has changed since.
"""

from pathlib import Path

from benchmarks.compress.cell import measure_cell
from benchmarks.compress.document import DOCUMENT, document_of
from benchmarks.compress.grid import cells
from benchmarks.compress.reading import RESULTS, is_outdated, read_cells
from benchmarks.running import Experiment, run_command


def _write(results: Path, output: Path) -> None:
    if found := read_cells(results):
        output.write_text(document_of(found), encoding="utf-8")


EXPERIMENT = Experiment(cells, measure_cell, RESULTS, DOCUMENT, _write, lambda content: not is_outdated(content))

if __name__ == "__main__":
    run_command(EXPERIMENT)
