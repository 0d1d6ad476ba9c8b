"""Tables of the card and of the report: figures before and after, and what each order of inspection led to."""

from axformer.reporting.report import InInt8, Interval, Measures, Report, Scores
from axformer.reporting.table import Table

_BEFORE_AND_AFTER = ["measure", "before", "after", "change"]


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
    return Table(["order", "validation loss", "parameters", "trials", "seconds"], rows)


def share(before: float, after: float) -> str:
    """A change in per cent."""
    return f"{after / before - 1:+.1%}"


def _scores(both: Report | InInt8) -> list[list[str]]:
    sets = ("validation",) if both.base.test is None else ("validation", "test")
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
    name = "held-out" if data == "test" else data
    return [
        [
            f"{name} {key.replace('_', ' ')}",
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
