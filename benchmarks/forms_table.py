"""Write the table of all forms from finished passes.

    python -m benchmarks.passes ... --forms compact,zeroed,onnx,onnx_int8
    python -m benchmarks.forms_speed RESULTS/paper/NAME CHECKPOINTS/NAME --data SETS/DATA/validation.jsonl
    python -m benchmarks.forms_table RESULTS/paper

Reads ``RESULTS/paper/NAME/report.json`` for every checkpoint ``NAME`` that has one, and prints a Markdown table: a row for the
untouched checkpoint in stock transformers, and one for each form of what its pass left. Speed is compared within a run where
all took turns: that of ``speed.json`` where it is there, else that of the report. ``--demo`` adds what ``make demo`` has left.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.checkpoints import CHECKPOINTS, Checkpoint, checkpoint_named
from benchmarks.forms_speed import SPEED_FILE
from benchmarks.results_table import metric_of

COLUMNS = (
    "checkpoint, tokens",
    "form",
    "MB",
    "loads in, s",
    "peak, MB",
    "one, ms (p95)",
    "speed",
    "32, ms (p95)",
    "speed",
    "metric",
    "logits differ by",
)
_BATCHES = (1, 32)
_NONE = "–"

Report = Mapping[str, Any]


def table_of(results: Path, demo: Path | None = None) -> str:
    """The table of all passes in a directory, in the order of the checkpoints, and of the demo's.

    Raises:
        FileNotFoundError: there is none.
    """
    homes = {checkpoint: results / checkpoint.name for checkpoint in CHECKPOINTS}
    if demo is not None:
        homes[replace(checkpoint_named("sst2"), name="demo")] = demo
    rows = [
        row for one, home in homes.items() if (home / "report.json").is_file() for row in rows_of(one, report_in(home))
    ]
    if not rows:
        raise FileNotFoundError(f"{results} holds no finished pass over a checkpoint of benchmarks/checkpoints.py")
    lines = [COLUMNS, tuple("---" for _ in COLUMNS), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def report_in(result: Path) -> Report:
    """The report of a result, with the speed that was measured on a quiet machine where it was."""
    report: dict[str, Any] = json.loads((result / "report.json").read_text(encoding="utf-8"))
    if not (result / SPEED_FILE).is_file():
        return report
    speed = json.loads((result / SPEED_FILE).read_text(encoding="utf-8"))["speed"]
    for form in (report["base_form"], *report["forms"]):
        form["speed"] = speed.get(form["name"], form["speed"])
    return report


def rows_of(checkpoint: Checkpoint, report: Report) -> Iterator[tuple[str, ...]]:
    """One row a form, the untouched checkpoint first."""
    base = report["base_form"]
    who = f"{checkpoint.name}, {_own(base, 1)['tokens']:.0f}"
    for form in (base, *report["forms"]):
        yield (who, form["name"], *(_figures(checkpoint, form, base) if form["made"] else _missing(form)))
        who = ""


def _figures(checkpoint: Checkpoint, form: Report, base: Report) -> Iterator[str]:
    yield f"{form['bytes'] / 1e6:.1f}"
    yield _shown(form["load_seconds"], ".2f")
    yield _NONE if form["peak_bytes"] is None else f"{form['peak_bytes'] / 1e6:.0f}"
    for batch in _BATCHES:
        mine, theirs = _own(form, batch), _own(base, batch)
        yield f"{mine['p50_ms']:.1f} ({mine['p95_ms']:.1f})"
        yield f"{theirs['p50_ms'] / mine['p50_ms']:.2f}x"
    yield f"{form['validation'][metric_of(checkpoint, form['validation'])]:.4f}"
    yield _shown(form["max_logit_difference"], ".1e")


def _missing(form: Report) -> Iterator[str]:
    yield f"not made: {form['reason']}"
    yield from [""] * (len(COLUMNS) - 3)


def _own(form: Report, batch: int) -> Report:
    """Speed on rows of the data, each of its own length."""
    found: Report = next(cell for cell in form["speed"] if cell["length"] is None and cell["batch"] == batch)
    return found


def _shown(value: float | None, form: str) -> str:
    return _NONE if value is None else format(value, form)


def main(
    results: Annotated[Path, typer.Argument(help="directory of the passes with one preset")],
    demo: Annotated[Path | None, typer.Option(help="the demo's result, a pass over movie reviews")] = None,
) -> None:
    """Print the table."""
    print(table_of(results, demo))


if __name__ == "__main__":
    typer.run(main)
