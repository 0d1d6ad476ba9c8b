"""Where the experiment departs from the paper's, set by set."""

from collections.abc import Iterable
from typing import Any

from benchmarks.evidence.grid import SEEDS, Cell, compared_cells
from benchmarks.evidence.reading import TEST, VALIDATION, Content
from benchmarks.evidence.tables import table

_PAPER = ("the paper", "BERT-base", "3", "10", "15 % of the training rows (13,000 for SQuAD)", "")


def protocol(found: Iterable[Content]) -> str:
    """Epochs, seeds and rows of each set and model that is compared, beside the paper's."""
    asked = {cell.name: cell for cell in compared_cells()}
    there = [(asked[one["cell"]], one) for one in found if one["cell"] in asked]
    rows = {
        (cell.checkpoint.family, cell.checkpoint.data): _row(cell, one["report"]["data"], there) for cell, one in there
    }
    head = ("set", "model", "epochs", "seeds", "deciding rows", "held-out rows")
    return table(head, [_PAPER, *(rows[who] for who in sorted(rows))]) if rows else ""


def _row(cell: Cell, data: dict[str, Any], there: Iterable[tuple[Cell, Content]]) -> list[str]:
    checkpoint = cell.checkpoint
    same = (checkpoint.family, checkpoint.data)
    seeds = {other.checkpoint.seed for other, _ in there if (other.checkpoint.family, other.checkpoint.data) == same}
    measured = f"{len(seeds)}" if len(seeds) == len(SEEDS) else f"{len(seeds)} of {len(SEEDS)}"
    rows = (f"{data[part]['rows']:,}" for part in (VALIDATION, TEST))
    return [checkpoint.data, checkpoint.family, f"{checkpoint.epochs}", measured, *rows]
