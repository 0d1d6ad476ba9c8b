"""The model card: ``README.md`` in the directory of a result, written for anyone who finds that directory."""

from typing import Any

from axformer.config import DEFAULT_METHOD, defaults_beside
from axformer.drawing.curve import describe_path
from axformer.drawing.picture import describe_plan
from axformer.plan.elements import Dimensions, parse
from axformer.plan.plan import Plan
from axformer.reporting.card_forms import Loading, forms_legend, forms_table, loading_forms
from axformer.reporting.card_tables import MOST_NAMED, before_and_after, by_layer, in_int8, orders_table, path_table
from axformer.reporting.deploy_table import deployables
from axformer.reporting.findings import limit_of
from axformer.reporting.first_look import first_look_of
from axformer.reporting.latency import without_removal
from axformer.reporting.rendering import passage, render
from axformer.reporting.sources import PAPER
from axformer.scores.confidence import CONFIDENCE, first_metric
from axformer.wire.report import Judgement, Report

CARD = "README.md"
PICTURE = "plan.svg"
"""File name of the plan's picture, which lies next to the card."""


def write_card(report: Report, plan: Plan, dimensions: Dimensions, loading: Loading) -> str:
    """Render the model card as Markdown."""
    values, default = shown(report, plan, dimensions, loading), defaults_beside(report.config)
    assert values["first_look"] is not None, "new reports have it"
    return render(
        CARD,
        **values,
        limit=limit_of(report),
        loading=loading,
        curve_in_words=describe_path(report.path),
        removed=[element.label for element in sorted(map(parse, report.removed), key=lambda element: element.layer)],
        knobs=[(name, value) for name, value in report.config.items() if value != default[name]],
    )


def shown(report: Report, plan: Plan, dimensions: Dimensions, loading: Loading) -> dict[str, Any]:
    """The values that the templates of card and page share, by name."""
    assert report.finding is not None, "new reports have one"
    method = report.config.get("method", DEFAULT_METHOD)
    return {
        "report": report,
        "title": passage(f"title_{method}"),
        "made": passage(f"made_{method}", report, PAPER),
        "by_layer": by_layer(plan, dimensions) if len(report.removed) > MOST_NAMED else None,
        "finding": report.finding,
        "is_bad": report.finding.verdict in (Judgement.NO_RELIABLE_GAIN, Judgement.LOSS),
        "certificate": report.certificate,
        "deployables": deployables(report.model_dump(mode="json")),
        "first_look": first_look_of(report),
        "confidence": f"{CONFIDENCE:.0%}",
        "before_and_after": before_and_after(report),
        "latency": _latency(report),
        "encoder": passage("encoder"),
        "int8": None if report.int8 is None else in_int8(report.int8),
        "orders": None if report.orders is None else orders_table(report),
        "path_in_words": _path(report),
        "path": path_table(report),
        "latency_of_a_point": passage("latency_of_a_point"),
        "map_in_words": describe_plan(plan, dimensions),
        "forms": forms_table(report),
        "forms_legend": forms_legend(report),
        "loading_forms": loading_forms(report, loading),
        "limits": _limits(report),
    }


def _latency(report: Report) -> str:
    """The part of the latency gain that needs no removal; empty if there is none."""
    before, between, after = report.base.latency_ms, report.one_position_ms, report.pruned.latency_ms
    return "" if between is None else passage("latency", without_removal(before, between, after))


def _path(report: Report) -> str | None:
    """The path, which model on it was kept, and why; None if nothing was accepted."""
    if len(report.path) < 2:
        return None
    confirming = report.data.get("confirming")
    metric = "" if report.base.confirming is None else first_metric(report.base.confirming).replace("_", " ")
    return passage("path", report, confirming, metric, report.certificate, limit_of(report))


def _limits(report: Report) -> list[str]:
    """What the figures cover and what they do not."""
    return [
        *([] if report.dtype == "float32" else [passage("limit_of_precision", report.dtype)]),
        passage("limit_of_machine", report.environment),
        passage("limit_of_inputs", report.data["test"] is not None),
        passage("limit_of_deciding"),
    ]
