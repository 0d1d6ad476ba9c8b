"""What can be deployed: the untouched model and each form of the result, with what each costs and brings.

Computed from the content of a ``report.json`` alone, so that command line, card, page and service show the same. No PyTorch.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from axformer.reporting.table import UNKNOWN, Table, number
from axformer.wire.metrics import LOWER_IS_BETTER, first_metric

BEFORE = "base"
"""The name of the untouched model among the forms of a report."""
STOCK = "stock"
"""The name of the form that needs no package besides transformers."""
MANY = 32
"""The batch whose throughput is shown."""
WORTH_IT = 1.03
"""A model that is less than this many times as fast is not worth replacing another for, nor installing a package for."""
BUSY = 0.6
"""Speeds that were measured with a processor for less than this share of the time are of a busy machine; threads that wait for
each other on an idle one take less off."""
_ROUNDING = 1e-9
"""Rounding error of a difference of two metrics."""
TITLES = {
    BEFORE: "before",
    STOCK: "stock",
    "compact": "PyTorch",
    "zeroed": "PyTorch, zeroed",
    "onnx": "ONNX",
    "onnx_int8": "ONNX int8",
}
"""The names of forms for people."""


@dataclass(frozen=True)
class Deployable:
    """One form."""

    name: str
    directory: str | None
    """In the result; None for the untouched model."""
    metric: float | None
    change: float | None
    """Of the metric, from the untouched model; None for the untouched model itself."""
    interval: tuple[float, float] | None
    """The 95 % interval of the change."""
    milliseconds: float | None
    """Median for one input."""
    times: float | None
    """How many times as fast as the untouched model with one input."""
    per_second: float | None
    """Inputs per second in batches of :data:`MANY`."""
    bytes: int | None
    """Size of the weight files."""
    processor_share: float | None = None
    """Share of the time with one input in which the computing thread had a processor; None if unknown."""

    @property
    def title(self) -> str:
        """Its name for people."""
        return TITLES.get(self.name, self.name)


@dataclass(frozen=True)
class Deployables:
    """All forms that were made, the untouched model first."""

    metric: str
    """The metric that is shown: the task's first one."""
    data: str
    """The rows that it was measured on, for people: ``held-out`` or ``validation``."""
    points: float | None
    """The points of the metric that the run was allowed to cost: all of them where it reached a size or a speed that was asked
    for; None if nothing was allowed."""
    rows: Sequence[Deployable]

    @property
    def best(self) -> Deployable | None:
        """The fastest form whose metric is not reliably worse than allowed, or the stock form if that is about as fast; None if
        no form is worth the change."""
        allowed = [row for row in self.rows[1:] if row.times is not None and not self._is_worse(row)]
        fastest = max(allowed, key=lambda row: row.times or 0.0, default=None)
        if fastest is None or (fastest.times or 0.0) < WORTH_IT:
            return None
        stock = next((row for row in allowed if row.name == STOCK), fastest)
        return stock if (stock.times or 0.0) * WORTH_IT > (fastest.times or 0.0) else fastest

    @property
    def shown(self) -> Deployable:
        """The form that stands for the result where there is room for one: the best one, else the first."""
        return self.best or self.rows[1]

    @property
    def before_and_after(self) -> str:
        """The metric of the untouched model and of the shown form."""
        values = (self.rows[0].metric, self.shown.metric)
        return " → ".join(UNKNOWN if value is None else _metric(self.metric, value) for value in values)

    def _is_worse(self, row: Deployable) -> bool:
        """Whether the metric fell by more than was allowed, beyond noise; without an interval, whether it fell at all."""
        if row.change is None:
            return False
        sign = -1.0 if self.metric in LOWER_IS_BETTER else 1.0
        best_case = max(sign * end for end in row.interval) if row.interval is not None else sign * row.change
        return best_case < -(self.points or 0.0) / 100 - _ROUNDING

    @property
    def sentence(self) -> str:
        """Which form to deploy, and whether the machine was too busy to trust milliseconds."""
        return f"{self._advice} {self._busy}".rstrip()

    @property
    def _busy(self) -> str:
        """That other programs ran while speeds were measured; empty if none did as far as is known."""
        share = min((row.processor_share for row in self.rows if row.processor_share is not None), default=1.0)
        if share >= BUSY:
            return ""
        return (
            f"Other programs kept the machine busy while speeds were measured: this one had a processor for {share:.0%} of the "
            "time. Trust how many times as fast a form is, since forms took turns, more than its milliseconds."
        )

    @property
    def _advice(self) -> str:
        best = self.best
        if best is None:
            return "No form is both faster and as good: keep your model."
        told = f"Deploy {best.directory or best.name}/ ({best.title}): {best.times:.1f} times as fast with one input"
        if best.metric is None:
            return f"{told}."
        before = self.rows[0].metric
        name = self.metric.replace("_", " ")
        of = "" if before is None else f" (before {_metric(self.metric, before)})"
        return f"{told}, {self.data} {name} {_metric(self.metric, best.metric)}{of}."

    def table(self) -> Table:
        """The forms as text, one row each."""
        name = f"{self.data} {self.metric.replace('_', ' ')}"
        head = ["", name, "change", "one input, ms", "times as fast", "inputs a second", "MB"]
        return Table(head, [self._cells(row) for row in self.rows])

    def _cells(self, row: Deployable) -> list[str]:
        return [
            row.title,
            UNKNOWN if row.metric is None else _metric(self.metric, row.metric),
            _change(self.metric, row),
            number(row.milliseconds, ".2f"),
            "" if row.name == BEFORE else number(row.times, ".2f"),
            number(row.per_second, ",.0f"),
            number(row.bytes, ",.1f", 1e-6),
        ]


def deployables(report: Mapping[str, Any]) -> Deployables | None:
    """The forms of a result.

    Args:
        report: the content of a ``report.json``, or the part of it with ``base_form``, ``forms`` and ``certificate``. Figures
            that a report of an earlier version lacks are unknown.

    Returns:
        None if the report has no forms.
    """
    base, forms = report.get("base_form"), [form for form in report.get("forms") or () if form["made"]]
    if base is None or not forms:
        return None
    data = "test" if all(form.get("test") for form in (base, *forms)) else "validation"
    metric = first_metric(base.get(data) or forms[0].get(data) or {})
    rows = [_deployable(form, base, metric, data) for form in (base, *forms)]
    points = (report.get("certificate") or {}).get("points")
    if (report.get("target") or {}).get("reached"):
        points = inf  # a size or a speed was asked for, whatever it costs
    return Deployables(metric, "held-out" if data == "test" else data, points, rows)


def _deployable(form: Mapping[str, Any], base: Mapping[str, Any], metric: str, data: str) -> Deployable:
    one, many, before = own_speed(form, 1), own_speed(form, MANY), own_speed(base, 1)
    value, reference = ((side.get(data) or {}).get(metric) for side in (form, base))
    difference = ((form.get("test_change") or {}).get("differences") or {}).get(metric) if data == "test" else None
    is_base = form["name"] == base["name"]
    return Deployable(
        name=BEFORE if is_base else form["name"],
        directory=form.get("directory"),
        metric=value,
        change=None if is_base or value is None or reference is None else value - reference,
        interval=None if difference is None else tuple(difference["interval"]),
        milliseconds=None if one is None else one["p50_ms"],
        times=None if one is None or before is None else before["p50_ms"] / one["p50_ms"],
        per_second=None if many is None else many["inputs_per_second"],
        bytes=form.get("bytes"),
        processor_share=None if one is None else one.get("processor_share"),
    )


def own_speed(form: Mapping[str, Any], batch: int) -> Mapping[str, Any] | None:
    """The speed at the data's own lengths in batches of a size; None if it was not measured."""
    cells: Iterable[Mapping[str, Any]] = form.get("speed") or ()
    return next((cell for cell in cells if cell["length"] is None and cell["batch"] == batch), None)


def _metric(name: str, value: float) -> str:
    return f"{value:.4f}" if name in LOWER_IS_BETTER else f"{100 * value:.2f}"


def _change(metric: str, row: Deployable) -> str:
    """The change in points with its interval, or as it is for a metric that is no share."""
    if row.change is None:
        return "" if row.name == BEFORE else UNKNOWN
    scale, form = (1, "+.4f") if metric in LOWER_IS_BETTER else (100, "+.2f")
    ends = row.interval
    bracketed = "" if ends is None else f" [{scale * ends[0]:{form}}, {scale * ends[1]:{form}}]"
    return f"{scale * row.change + 0.0:{form}}{bracketed}"
