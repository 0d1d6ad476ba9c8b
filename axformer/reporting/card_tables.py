"""Tables of the card and of the report: figures before and after, and what each order of inspection led to."""

from axformer.reporting.report import InInt8, Interval, Measures, Report, Scores
from axformer.reporting.table import Table

_BEFORE_AND_AFTER = ["measure", "before", "after", "change"]
LATENCY_OF_A_POINT = (
    "Latency is estimated: that of the untouched model, by the operations that are left. Only that of the finished model was "
    "measured, before and after."
)
_SETS = {"validation": "validation", "confirming": "confirming", "test": "held-out"}
"""What the data of a report is called."""


def before_and_after(report: Report) -> Table:
    """Scores and sizes of both models."""
    return Table(_BEFORE_AND_AFTER, _scores(report) + sizes_of(report.base, report.pruned))


def in_int8(both: InInt8) -> Table:
    """Scores of both models computed in int8."""
    return Table(_BEFORE_AND_AFTER, _scores(both))


def orders_table(report: Report) -> Table:
    """What each order led to; the report is one of a search of orders."""
    assert report.orders is not None, "only a search of orders has this table"
    rows = [
        [
            f"{one.order}{' (this model)' if one.kept else ''}",
            f"{one.loss:.4f}",
            f"{one.parameters:,}",
            f"{one.trials}",
            f"{one.seconds:.1f}",
        ]
        for one in report.orders
    ]
    deciding = "validation loss" if report.data.get("confirming") is None else "confirming loss"
    return Table(["order", deciding, "parameters", "trials", "seconds"], rows)


def share(before: float, after: float) -> str:
    """A change in per cent."""
    return f"{after / before - 1:+.1%}"


def path_table(report: Report) -> Table:
    """Every model on the path of the pass."""
    untouched = report.path[0]
    measured = [
        name
        for name, figures in (("confirming", untouched.confirming), ("held-out", untouched.test))
        if figures is not None
    ]
    head = ["after trial", "accepted", "deciding loss", *(f"{name} loss" for name in measured)]
    rows = [
        [
            f"{point.seq}{' (this model)' if point.kept else ''}",
            point.element or "untouched",
            f"{point.loss:.4f}",
            *(f"{figures['loss']:.4f}" for figures in (point.confirming, point.test) if figures is not None),
            f"{point.parameters:,}",
            f"{point.estimated_speedup:.2f} times fewer",
            f"{point.estimated_latency_ms:.2f}",
        ]
        for point in report.path
    ]
    return Table([*head, "parameters", "operations", "latency, ms"], rows)


def _scores(both: Report | InInt8) -> list[list[str]]:
    sets = [data for data in _SETS if getattr(both.base, data) is not None]
    return [row for data in sets for row in _rows(data, _figures(both.base, data), _figures(both.pruned, data), both)]


def _figures(measures: Scores, data: str) -> dict[str, str]:
    values: dict[str, float] = getattr(measures, data)
    intervals: dict[str, Interval] = getattr(measures, f"{data}_intervals")
    return {key: f"{value:.4f} {_bracketed(intervals[key])}" for key, value in values.items()}


def _bracketed(interval: Interval, form: str = ".4f") -> str:
    return f"[{interval[0]:{form}}, {interval[1]:{form}}]"


def _rows(data: str, before: dict[str, str], after: dict[str, str], both: Report | InInt8) -> list[list[str]]:
    comparison = both.comparison[data]
    assert comparison is not None, "both models were measured on this data"
    return [
        [
            f"{_SETS[data]} {key.replace('_', ' ')}",
            before[key],
            after[key],
            f"{change.value:+.4f} {_bracketed(change.interval, '+.4f')}",
        ]
        for key, change in comparison.differences.items()
    ]


def sizes_of(base: Measures, pruned: Measures) -> list[list[str]]:
    """A row a figure: its name, before, after, and the change in per cent."""
    figures = (
        ("parameters", base.parameters, pruned.parameters, ",.0f"),
        ("weight files, MB", base.bytes / 1e6, pruned.bytes / 1e6, ".1f"),
        ("operations, millions", base.operations / 1e6, pruned.operations / 1e6, ",.1f"),
        ("latency, ms", base.latency_ms, pruned.latency_ms, ".2f"),
    )
    return [
        [name, format(before, form), format(after, form), share(before, after)] for name, before, after, form in figures
    ]
