"""What a pass finds in each family and task, and how fast each form of the result is."""

from collections.abc import Sequence

from benchmarks.checkpoints import CHECKPOINTS
from benchmarks.harness import Arm, Cell, Content, Grid
from benchmarks.prune import by_prune, usual_metric
from benchmarks.tables import NONE, table

GRID = Grid(
    "forms",
    {"paper": Arm(forms=("compact", "zeroed", "onnx", "onnx_int8"))},
    [Cell(checkpoint, "paper") for checkpoint in CHECKPOINTS],
    by_prune(usual_metric),
)
_BATCHES = (1, 32)


def by_form(cells: Sequence[Content]) -> str:
    """Size and speed of each form; *speed* is relative to the untouched checkpoint in stock transformers."""
    rows = []
    for cell in cells:
        report, base = cell["report"], cell["report"]["base_form"]
        for form in (base, *(one for one in report["forms"] if one["made"])):
            speeds = []
            for batch in _BATCHES:
                own, untouched = (_milliseconds(one, batch) for one in (form, base))
                speeds += [f"{own:.1f}", f"{untouched / own:.2f}x"]
            value = form["validation"][cell["metric"]] if form["validation"] else None
            told = NONE if value is None else f"{value:.4f}"
            rows.append([cell["cell"], form["name"], f"{form['bytes'] / 1e6:.1f}", *speeds, told])
    return table(("checkpoint", "form", "MB", "one, ms", "speed", "32, ms", "speed", "metric"), rows) if rows else ""


def _milliseconds(form: Content, batch: int) -> float:
    """Of a batch of the data's own rows."""
    return next(float(one["p50_ms"]) for one in form["speed"] if one["length"] is None and one["batch"] == batch)
