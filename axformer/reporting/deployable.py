"""A form that can be deployed, all of them together, and the advice which one to take. No PyTorch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from axformer.forms.kinds import KINDS, seen_from
from axformer.reporting.rendering import UNKNOWN, Table, number
from axformer.reporting.standing import UNJUDGED, UNLABELLED
from axformer.wire.metrics import LOWER_IS_BETTER, PEARSON, SAME_NEAREST, in_words
from axformer.wire.report import Deployment
from axformer.wire.verdicts import JudgedRows, Judgement, Standing

BEFORE = "base"
"""The name of the untouched model among the forms of a report."""
STOCK = "stock"
"""The name of the form that needs no package besides transformers."""
MANY = 32
"""The batch whose throughput is shown."""
WORTH_IT = 1.03
"""A model that is less than this many times as fast is not worth replacing another for, nor installing a package for."""
WIDE = 0.5
"""A speed whose interval is wider than this share of it could not be measured."""
BUSY = 0.6
"""Speeds that were measured with a processor for less than this share of the time are of a busy machine; threads that wait for
each other on an idle one take less off."""
TITLES = {
    BEFORE: "before",
    STOCK: "stock",
    "compact": "PyTorch",
    "zeroed": "PyTorch, zeroed",
    "onnx": "ONNX",
    "onnx_fp16": "ONNX fp16",
    "onnx_int8": "ONNX int8",
}
"""The names of forms for people."""
AGREEMENT = "pearson with answers before"
"""Of numbers on unlabelled rows: how far the answers go along with those of the untouched model."""


@dataclass(frozen=True)
class Deployable:
    """One form."""

    name: str
    directory: str | None
    """In the result; None if it does not lie there."""
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
    times_interval: tuple[float, float] | None = None
    """The 95 % interval of ``times``; None in reports of earlier versions."""
    of_untouched: bool = False
    """Whether it holds the untouched model."""
    judgement: Judgement = UNJUDGED
    changed: float | None = None
    """The share of the rows whose answer is another one; None where answers are numbers, or it is unknown."""
    lost_class: str = ""
    """The class that lost most, in a sentence, if it lost by more than chance; else empty."""
    processor_share: float | None = None
    """Share of the time with one input in which the computing thread had a processor; None if unknown."""
    seq: int | None = None
    """The trial whose model it holds, where that is another than the result's."""

    @property
    def title(self) -> str:
        """Its name for people."""
        title = TITLES.get(self.name, self.name)
        return f"before, {title}" if self.of_untouched and self.directory is None and self.name != BEFORE else title

    @property
    def place(self) -> str:
        """What is loaded, in the result: a directory, which ends with a slash, or a file; empty if it does not lie there."""
        if self.directory is None:
            return ""
        kind = KINDS.get(self.name)  # in results of earlier versions each form has a directory of its own
        return kind.place if kind is not None and kind.directory == self.directory else f"{self.directory}/"

    @property
    def is_measured(self) -> bool:
        """Whether it is known how many times as fast it is."""
        if self.times is None:
            return False
        return self.times_interval is None or self.times_interval[1] - self.times_interval[0] <= WIDE * self.times

    @property
    def is_faster(self) -> bool:
        """Whether it is shown to be clearly faster than the untouched model in PyTorch; that model itself never is."""
        if not self.is_measured or (self.of_untouched and not self.name.startswith("onnx")):
            return False
        return (self.times_interval or (self.times or 0.0,))[0] > WORTH_IT

    def times_of(self, other: "Deployable") -> tuple[float, float]:
        """How many times as fast as another form it is, and the lower end of that; their intervals are taken as independent."""
        assert self.times, "it was measured"
        assert other.times, "it was measured"
        below = math.log(self.times / (self.times_interval or (self.times,))[0])
        above = math.log((other.times_interval or (other.times,))[-1] / other.times)
        ratio = self.times / other.times
        return ratio, ratio * math.exp(-math.hypot(below, above))


@dataclass(frozen=True)
class Deployables:
    """All forms that were made, the untouched model first."""

    metric: str
    """The metric that is shown: the task's first one."""
    data: str
    """The rows that it was measured on, for people."""
    judged: JudgedRows
    """What a form is judged by."""
    rows: Sequence[Deployable]
    inside: str = ""
    """The directory of the result that the reader is in; empty for its top."""

    @property
    def best(self) -> Deployable | None:
        """The fastest form that is shown to be faster, and to have lost no more than was allowed; one that needs no pruning, or
        no package, if it is about as fast. None if there is none."""
        allowed = [row for row in self.rows[1:] if row.is_faster and row.judgement.standing is Standing.SHOWN]
        fastest = max(allowed, key=lambda row: row.times or 0.0, default=None)
        if fastest is None:
            return None
        own = max((row for row in allowed if row.of_untouched), key=lambda row: row.times or 0.0, default=None)
        if own is not None and fastest.times_of(own)[1] <= WORTH_IT:
            return own
        stock = next((row for row in allowed if row.name == STOCK), fastest)
        return stock if (stock.times or 0.0) * WORTH_IT > (fastest.times or 0.0) else fastest

    @property
    def shown(self) -> Deployable:
        """The form that stands for the result where there is room for one: the best one, else the first of the result."""
        return self.best or next(row for row in self.rows[1:] if row.directory is not None or not row.of_untouched)

    @property
    def pruned(self) -> Deployable:
        """The finished model in PyTorch; where that failed its check, in another form."""
        timed = [row for row in self.rows[1:] if row.times is not None]
        return next((row for row in self.rows[1:] if row.name == "compact"), (timed or self.rows)[-1])

    @property
    def what(self) -> str:
        """The metric and its rows, for people."""
        if self.metric == SAME_NEAREST:
            return f"{self.data} texts finding the same nearest text"
        if self.judged.data == UNLABELLED:
            return AGREEMENT if self.metric == PEARSON else "unlabelled rows answered as before"
        return f"{self.data} {in_words(self.metric)}"

    @property
    def before_and_after(self) -> str:
        """The metric of the untouched model and of the shown form."""
        values = (self.rows[0].metric, self.shown.metric)
        return " → ".join(UNKNOWN if value is None else _metric(self.metric, value) for value in values)

    @property
    def unit(self) -> str:
        """What was allowed, for people: ``2 points``."""
        name = "%" if self.metric in LOWER_IS_BETTER else " point" if self.judged.points == 1 else " points"
        return f"{self.judged.points:g}{name}"

    @property
    def sentence(self) -> str:
        """Which form to deploy, and whether the machine was too busy to trust milliseconds."""
        return f"{self._advice} {self._busy}".rstrip()

    def advice(self) -> Deployment:
        """The same as data, for programs."""
        best = self.best
        if best is None:
            return Deployment(form=None, sentence=self._advice)
        assert best.times is not None, "it is faster"
        low, high = best.times_interval or (best.times, best.times)
        change = (
            None if best.change is None or best.interval is None else (best.interval[0], best.change, best.interval[1])
        )
        own = self.same_before(best)
        return Deployment(
            form=best.name,
            of_untouched=best.of_untouched,
            directory=best.directory,
            times=(low, best.times, high),
            change=change,
            certified=best.judgement.is_certified,
            by_pruning=None if own is None else best.times_of(own)[0],
            sentence=self._advice,
        )

    def same_before(self, row: Deployable) -> Deployable | None:
        """The untouched model in the runtime of a pruned form; None if it was not measured there, or that is PyTorch."""
        if row.of_untouched:
            return None
        return next(
            (one for one in self.rows[1:] if one.of_untouched and one.name == row.name and one.is_measured), None
        )

    @property
    def _busy(self) -> str:
        """That other programs ran while speeds were measured; empty if none did as far as is known."""
        share = min((row.processor_share for row in self.rows if row.processor_share is not None), default=1.0)
        if share >= BUSY:
            return ""
        return (
            f"Other programs kept the machine busy while speeds were measured: this one had a processor for {share:.0%} of the "
            "time. Measure again where it will run: axformer bench."
        )

    @property
    def _advice(self) -> str:
        best = self.best
        if best is None:
            return f"Keep your model: {self._why_none()}."
        what = (
            f"{seen_from(best.place, self.inside)} ({best.title})"
            if not best.of_untouched
            else f"{TITLES[best.name]} of your own model"
            + (" (made by axformer int8)" if best.directory is None else "")
        )
        which = "" if best.seq is None else f", the model of trial {best.seq}"
        told = [f"Deploy {what}{which}: {times_in_words(best)} with one input", *self._metric_of(best)]
        if best.judgement.is_certified:
            told.append(f"certified within {self.unit}")
        return " ".join(filter(None, (f"{', '.join(told)}.", self._pruning_adds(best), best.lost_class)))

    def _metric_of(self, row: Deployable) -> list[str]:
        if row.metric is None:
            return []
        if (self.judged.data == UNLABELLED and self.metric != PEARSON) or self.metric == SAME_NEAREST:
            return [f"{_metric(self.metric, row.metric)} % of the {self.what}"]
        before = self.rows[0].metric
        of = "" if before is None else f" (before {_metric(self.metric, before)})"
        return [f"{self.what} {_metric(self.metric, row.metric)}{of}"]

    def _pruning_adds(self, best: Deployable) -> str:
        """What of the speed is pruning's; empty where the runtime is that of before, or nothing was removed."""
        if not best.of_untouched:
            own = self.same_before(best)
            if own is None:
                return ""
            ratio = best.times_of(own)[0]
            made = f"makes it {ratio:.2f} times as fast as" if ratio > 1 else "did not make it faster than"
            return f"Pruning {made} {TITLES[own.name]} of your own model."
        pruned = [row for row in self.rows[1:] if not row.of_untouched and row.name == best.name]
        if not pruned:
            where = "here" if best.directory == self.inside else "in the result"
            return "" if best.directory is None else f"It lies {where}."
        (row,) = pruned
        if row.judgement.standing is not Standing.SHOWN:
            return f"The pruned one {self.lacks(row)}."
        if not row.is_measured:
            return "Whether pruning adds to that could not be measured here."
        more = round(row.times_of(best)[0] - 1, 2)
        told = (
            f"adds {more:+.0%} to that, which is not worth it or not sure" if more > 0 else "does not make that faster"
        )
        return f"Pruning {told}."

    def _why_none(self) -> str:
        """Why no form is advised, of the fastest one."""
        timed = [row for row in self.rows[1:] if row.is_faster]
        if not timed:
            others = [row for row in self.rows[1:] if row.times is not None and not row.is_measured]
            if others:
                return (
                    f"how fast {others[-1].title} is could not be measured here; try axformer bench on a quiet machine"
                )
            return "no form is faster"
        fastest = max(timed, key=lambda row: row.times or 0.0)
        return f"{fastest.title} is {times_in_words(fastest)}, but {self.lacks(fastest)}"

    def lacks(self, row: Deployable) -> str:
        """Why a form is not advised, as the end of a sentence."""
        standing = row.judgement.standing
        if standing is Standing.GUESSING:
            return f"is no better than guessing ({self.what} {_metric(self.metric, row.metric or 0.0)})"
        if standing is Standing.FEWER_CLASSES:
            return f"answers only {row.judgement.classes} classes of your model"
        if standing is Standing.WORSE:
            return f"lost more than {self.unit} of {self.what} ({_change(self.metric, row)})"
        if standing is Standing.UNKNOWN:
            return "no rows show what it costs; give held-out data (--test)"
        more = row.judgement.more_rows
        needed = "" if more is None else f": about {more:,} more {self.data} rows would show it"
        on = f" on {self.judged.rows:,} rows" if self.judged.rows else ""
        return f"is not shown to be within {self.unit}{on} ({_change(self.metric, row)}){needed}"

    def table(self) -> Table:
        """The forms as text, one row each."""
        head = ["", self.what, "change", "answers changed", "one input, ms", "times as fast", "inputs a second", "MB"]
        return Table(head, [self._cells(row) for row in self.rows])

    def _cells(self, row: Deployable) -> list[str]:
        is_before = row.name == BEFORE
        return [
            row.title,
            UNKNOWN if row.metric is None else _metric(self.metric, row.metric),
            _change(self.metric, row),
            "" if is_before else number(row.changed, ".1%"),
            number(row.milliseconds, ".2f"),
            "" if is_before else _times(row),
            number(row.per_second, ",.0f"),
            number(row.bytes, ",.1f", 1e-6),
        ]


def times_in_words(row: Deployable) -> str:
    """``4.4 times as fast [4.2, 4.6]``."""
    ends = "" if row.times_interval is None else " [{:.1f}, {:.1f}]".format(*row.times_interval)
    return f"{row.times:.1f} times as fast{ends}"


def _metric(name: str, value: float) -> str:
    return f"{value:.4f}" if name in LOWER_IS_BETTER else f"{100 * value:.2f}"


def _times(row: Deployable) -> str:
    if row.times is None:
        return UNKNOWN
    if not row.is_measured:
        return "? [{:.1f}, {:.1f}]".format(*(row.times_interval or ()))
    return f"{row.times:.2f}" + ("" if row.times_interval is None else " [{:.2f}, {:.2f}]".format(*row.times_interval))


def _change(metric: str, row: Deployable) -> str:
    """The change in points with its interval, or as it is for a metric that is no share."""
    if row.change is None:
        return "" if row.name == BEFORE else UNKNOWN
    scale, form = (1, "+.4f") if metric in LOWER_IS_BETTER else (100, "+.2f")
    ends = row.interval
    bracketed = "" if ends is None else f" [{scale * ends[0]:{form}}, {scale * ends[1]:{form}}]"
    return f"{scale * row.change + 0.0:{form}}{bracketed}"
