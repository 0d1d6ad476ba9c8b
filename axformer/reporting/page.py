"""``report.html``: a finished pass on one page. It needs neither network nor scripts, and can be printed.

The page shows what ``report.json``, ``plan.json`` and ``trace.jsonl`` hold and computes nothing itself. Text from outside,
such as a device name, a reason or an element, goes to the template as text, which escapes it.
"""

import json
from collections.abc import Sequence

from markupsafe import Markup

from axformer.config import defaults_beside
from axformer.drawing.chart import loss_chart
from axformer.drawing.curve import path_curve
from axformer.drawing.lines import loss_curve
from axformer.drawing.picture import picture
from axformer.drawing.sheet import SHEET
from axformer.drawing.svg import inline
from axformer.plan.elements import Dimensions, label_of
from axformer.plan.plan import PlanFile
from axformer.plan.trial import Trial, Verdict
from axformer.reporting.card import shown
from axformer.reporting.card_forms import Loading
from axformer.reporting.card_tables import sizes_of
from axformer.reporting.rendering import Table, made_with, render
from axformer.wire.metrics import LOSS, in_words, judging_metric
from axformer.wire.report import FormReport, Report, SpeedCell

PAGE = "report.html"
"""File name of the page, which lies next to the card."""


def report_page(
    report: Report, plan: PlanFile, dimensions: Dimensions, trace: Sequence[Trial], loading: Loading
) -> str:
    """Render the page as HTML.

    Args:
        report: the report of the finished pass.
        plan: what is left of the model.
        dimensions: dimensions of the model before the pass.
        trace: every trial of the pass.
        loading: how to load the model with transformers' own classes.
    """
    return render(
        PAGE,
        **shown(report, plan.plan, dimensions, loading),
        plan=plan,
        headlines=_headlines(report),
        sheet=Markup(SHEET),  # noqa: S704 - our own CSS
        chart=Markup(inline(loss_chart(trace, kept=next((point.seq for point in report.path if point.kept), None)))),  # noqa: S704 - made of numbers and escaped words
        map=Markup(inline(picture(plan.plan, dimensions))),  # noqa: S704 - the same
        curve=Markup(inline(path_curve(report.path))),  # noqa: S704 - the same
        losses=_losses(report),
        accepted=_accepted(trace),
        speed=_speed(report),
        knobs=_knobs(report),
        environment=_environment(report),
    )


def _losses(report: Report) -> Markup:
    """The curve of the training's losses; empty where there was none."""
    curve = () if report.finetune is None else report.finetune.curve
    return Markup(inline(loss_curve(curve) or ""))  # noqa: S704 - made of numbers


def _headlines(report: Report) -> list[list[str]]:
    """Figures at the top of the page: name, before, after and change."""
    base, pruned = report.base, report.pruned
    data = "validation" if base.test is None else "test"
    name = "validation" if base.test is None else "held-out"
    before, after = getattr(base, data), getattr(pruned, data)
    scores = [
        [
            f"{name} {in_words(key)}",
            f"{before[key]:.4f}",
            f"{after[key]:.4f}",
            f"{after[key] - before[key]:+.4f}",
        ]
        for key in dict.fromkeys((LOSS, judging_metric(before, data)))
    ]
    return scores + sizes_of(dict(report))


def _accepted(trace: Sequence[Trial]) -> Table:
    """The accepted trials in the order of the pass."""
    rows = [
        [
            f"{trial.seq}",
            label_of(trial.element, "base"),
            f"{trial.min_loss:.4f}",
            f"{trial.loss:.4f}",
            f"{trial.helped:,} of {trial.total:,}",
            f"{trial.parameters:,}",
            f"{trial.seconds:.1f}",
        ]
        for trial in trace
        if trial.verdict is Verdict.ACCEPT
    ]
    return Table(["trial", "element", "least loss before", "loss", "samples helped", "parameters", "after, s"], rows)


def _speed(report: Report) -> Table:
    """Every measured batch and length, one column per form."""
    forms = [report.base_form, *(form for form in report.forms if form.made)]
    names = ["before the pass", *(form.name for form in forms[1:])]
    rows = [
        [f"{cell.batch}", "the data's own" if cell.length is None else f"{cell.length}", *_across(forms, cell)]
        for cell in report.base_form.speed
    ]
    return Table(["batch", "tokens", *names], rows)


def _across(forms: Sequence[FormReport], cell: SpeedCell) -> list[str]:
    """The cell of every form that has the batch and length of a given one."""
    same = (
        next((other for other in form.speed if (other.batch, other.length) == (cell.batch, cell.length)), None)
        for form in forms
    )
    return ["–" if other is None else f"{other.p50_ms:.2f} ({other.p95_ms:.2f})" for other in same]


def _knobs(report: Report) -> Table:
    default = defaults_beside(report.config)
    rows = [
        [name, json.dumps(value), "the same" if value == default[name] else json.dumps(default[name])]
        for name, value in report.config.items()
    ]
    return Table(["knob", "value", "default"], rows)


def _environment(report: Report) -> Table:
    peak, refused = report.work.device_peak_bytes, report.work.refused_by_safeguard
    figures = {
        "trials decided in": ", ".join(f"{count:,} {name}" for name, count in report.work.trials_by_precision.items()),
        "trials decided early": f"{report.work.decided_early:,}",
        **({} if refused is None else {"trials refused by the safeguard alone": f"{refused:,}"}),
        "most memory": f"{report.work.peak_bytes / 1e6:,.0f} MB",
        **({} if peak is None else {"most memory of the GPU": f"{peak / 1e6:,.0f} MB"}),
    }
    return made_with(report.environment, figures)
