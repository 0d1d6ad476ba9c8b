"""Write the tables of results from finished passes: what went, and what came of it on held-out data.

    python -m benchmarks.results_table RESULTS/paper

Reads ``RESULTS/paper/NAME/report.json`` for every checkpoint ``NAME`` of ``benchmarks/checkpoints.py`` that has one, and
prints two Markdown tables. Intervals and tests are those of the report; where it has none, the figure stands alone.
"""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.checkpoints import CHECKPOINTS, Checkpoint

COLUMNS = (
    "family",
    "task",
    "data, rows deciding and held out",
    "removed",
    "hard attention",
    "parameters",
    "of the encoder",
    "latency, ms",
    "deciding loss",
    "held-out loss",
    "held-out metric",
    "base",
    "AxFormer",
    "difference",
    "McNemar p",
)
_WHO = COLUMNS[:3]
_WENT, _HELD_OUT = COLUMNS[3:9], COLUMNS[9:]
_KINDS = {"layer": "layer", "attention": "attention", "ffn": "FFN", "head": "head", "neurons": "neuron group"}
_LOSS = "loss"
_NONE = "none"
_UNKNOWN = "–"

Report = Mapping[str, Any]


def tables_of(results: Path) -> str:
    """The tables of all passes in a directory, in the order of the checkpoints.

    Raises:
        FileNotFoundError: there is none.
    """
    reports = {checkpoint: results / checkpoint.name / "report.json" for checkpoint in CHECKPOINTS}
    rows = [
        row_of(one, json.loads(path.read_text(encoding="utf-8"))) for one, path in reports.items() if path.is_file()
    ]
    if not rows:
        raise FileNotFoundError(f"{results} holds no finished pass over a checkpoint of benchmarks/checkpoints.py")
    return "\n".join(_table((*_WHO, *columns), rows) for columns in (_WENT, _HELD_OUT))


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    places = [COLUMNS.index(column) for column in columns]
    lines = [columns, ("---",) * len(columns), *([row[place] for place in places] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def row_of(checkpoint: Checkpoint, report: Report) -> tuple[str, ...]:
    """One pass as a row of both tables, in the order of ``COLUMNS``."""
    base, pruned, data = report["base"], report["pruned"], report["data"]
    metric = metric_of(checkpoint, base["test"])
    return (
        checkpoint.family,
        checkpoint.task,
        f"{checkpoint.data}, {data['validation']['rows']:,} and {data['test']['rows']:,}",
        _removed(report["removed"]),
        ", ".join(map(str, report["hard_attention"])) or _NONE,
        _change(base["parameters"], pruned["parameters"], ","),
        _encoder(base, pruned),
        _change(base["latency_ms"], pruned["latency_ms"], ".2f"),
        _change(base["validation"][_LOSS], pruned["validation"][_LOSS], ".4f"),
        _change(base["test"][_LOSS], pruned["test"][_LOSS], ".4f"),
        metric.replace("_", " "),
        _with_interval(base["test"][metric], (base.get("test_intervals") or {}).get(metric)),
        _with_interval(pruned["test"][metric], (pruned.get("test_intervals") or {}).get(metric)),
        *_comparison(report, metric),
    )


def metric_of(checkpoint: Checkpoint, figures: Mapping[str, float]) -> str:
    """The checkpoint's metric by the name that the report gives it, else the report's first."""
    names = [name for name in checkpoint.metrics if name in figures] + [name for name in figures if name != _LOSS]
    return [*names, _LOSS][0]


def _removed(elements: list[str]) -> str:
    """How many elements of each kind went, such as ``2 heads, 1 FFN``."""
    kinds = Counter(_kind(element) for element in elements)
    return (
        ", ".join(
            f"{kinds[kind]} {name}{'s' if kinds[kind] > 1 else ''}" for kind, name in _KINDS.items() if kind in kinds
        )
        or _NONE
    )


def _kind(element: str) -> str:
    """``head`` of ``layer.3.attention.head.5``: the last part of an id that is no number or range."""
    return [part for part in element.split(".") if not part[0].isdigit()][-1]


def _encoder(base: Report, pruned: Report) -> str:
    """Parameters of the transformer layers, which older reports do not tell."""
    before, after = (side.get("encoder_parameters") for side in (base, pruned))
    return _UNKNOWN if before is None or after is None else _change(before, after, ",")


def _change(before: float, after: float, form: str) -> str:
    return f"{before:{form}} → {after:{form}}"


def _with_interval(value: float, interval: tuple[float, float] | None, form: str = ".4f") -> str:
    return f"{value:{form}}" + ("" if interval is None else f" [{interval[0]:{form}}, {interval[1]:{form}}]")


def _comparison(report: Report, metric: str) -> tuple[str, str]:
    """Difference of the metric on held-out data, and the p-value of McNemar's test; empty where the report has none."""
    comparison = (report.get("comparison") or {}).get("test")
    if comparison is None:
        return "", ""
    difference = comparison["differences"].get(metric)
    test = comparison["mcnemar"]
    told = "" if difference is None else _with_interval(difference["value"], difference["interval"], "+.4f")
    return told, "" if test is None else f"{test['p_value']:.3f} (+{test['gained']} −{test['lost']})"


def main(
    results: Annotated[Path, typer.Argument(help="directory of finished passes, one for each checkpoint")],
) -> None:
    """Print the tables."""
    print(tables_of(results), end="")


if __name__ == "__main__":
    typer.run(main)
