"""Whether a kept cell is what the grid asks for now. One that was measured otherwise is marked, and is measured again."""

from functools import cache
from pathlib import Path

from axformer.config import PassConfig, make_pass_config
from axformer.methods.axformer.ordering import order_of
from benchmarks.evidence.grid import ARMS, Cell, cells, earlier_cells
from benchmarks.evidence.reading import Content, read_cell

FORMAT = "axformer-evidence/2"
_BY_INTERVAL = "axformer-evidence/1"
"""Of cells in which a bootstrap interval chose the model within points, where an exact test does now."""
MARKS = {
    "*": "measured in the order top, middle, bottom; for this task the paper advises top, bottom, middle (Table VII), which is "
    "used now",
    "†": "a bootstrap interval chose the model, and on so few rows its coverage is below 95 %; an exact test chooses now",
}
"""How a kept cell may differ from what its arm asks for now."""


def marks_of(one: Content) -> str:
    """The marks of a cell; nothing where it is what is asked for, or is not in the grid."""
    cell = _planned().get(one["cell"])
    if cell is None:
        return ""
    by_interval = ARMS[cell.arm].knobs.get("within_points") is not None and one["format"] == _BY_INTERVAL
    return ("*" if _is_in_another_order(cell, one) else "") + ("†" if by_interval else "")


def stands(file: Path) -> bool:
    """Whether this is the file of a cell that was measured as it is asked for now."""
    return file.is_file() and not marks_of(read_cell(file))


def _is_in_another_order(cell: Cell, one: Content) -> bool:
    arm, measured = ARMS[cell.arm], one["report"]["config"]
    order = {"order": arm.knobs["order"]} if "order" in arm.knobs else {}
    asked = make_pass_config(arm.preset, {"task_name": cell.checkpoint.task_name, **order})
    return order_of(asked) != order_of(PassConfig(order=measured["order"], task_name=measured["task_name"]))


@cache
def _planned() -> dict[str, Cell]:
    return {cell.name: cell for cell in (*cells(), *earlier_cells())}
