"""The model card: ``README.md`` in the directory of a result, written for anyone who finds that directory."""

from dataclasses import replace
from typing import Any

from axformer.config import config_class, defaults_beside
from axformer.data.columns import OWN_ANSWERS
from axformer.drawing.curve import describe_path
from axformer.drawing.picture import describe_plan
from axformer.plan.elements import Dimensions, parse
from axformer.plan.plan import Plan, PlanFile
from axformer.reporting.card_forms import Loading, forms_legend, forms_table, loading_forms
from axformer.reporting.card_metadata import metadata, name_of_data, name_of_model
from axformer.reporting.card_tables import MOST_NAMED, before_and_after, by_layer, path_table, without_removal
from axformer.reporting.deploy_table import PATH_TITLE, deployables, deployed_path
from axformer.reporting.deployable import TITLES
from axformer.reporting.findings import limit_of
from axformer.reporting.look import first_look_of
from axformer.reporting.rendering import Table, passage, passage_from, render
from axformer.scores.confidence import CONFIDENCE
from axformer.wire.metrics import in_words, judging_metric
from axformer.wire.report import Report
from axformer.wire.run import IN_MEMORY, Run, command
from axformer.wire.verdicts import FindingVerdict

CARD = "README.md"
PAPER = "Nagarajan et al., AxFormer, 2022, Algorithm 1"
"""The source of the method."""
_MOST_CLASSES = 12
"""Classes that the summary names."""
_UNNAMED = "–"
_PARTS = {
    "validation": "validation: decided",
    "confirming": "the part of it that confirmed and did not decide",
    "unlabelled": "unlabelled rows that confirmed: answers before and after",
    "test": "held-out: only measured",
    "calibrate": "calibration: weights were fitted on it, without labels",
    "train": "training, after the removal",
}
"""The parts of a run's data, for people."""
_CALIBRATED = "unlabelled rows that calibrated"
PICTURE = "plan.svg"
"""File name of the plan's picture, which lies next to the card."""


def write_card(
    report: Report,
    plan: PlanFile,
    dimensions: Dimensions,
    loading: Loading,
    run: Run | None = None,
    inside: str = "",
) -> str:
    """Render the model card as Markdown, with the metadata that model hubs read.

    Args:
        run: the run as it was asked for; None where nobody asked.
        inside: the directory of the result that the card is for, which may be handed on alone; empty for its top.
    """
    values, default = shown(report, plan.plan, dimensions, loading, inside), defaults_beside(report.config)
    assert values["first_look"] is not None, "new reports have it"
    return render(
        CARD,
        **values,
        metadata=metadata(report, loading, inside),
        inside=inside,
        limit=limit_of(report),
        nothing_met=passage_from(config_class(report.config).about.nothing_met, config=report.config),
        loading=loading,
        command=None if run is None or run.checkpoint.uri == IN_MEMORY else command(run),
        source=plan.source,
        layers=len(plan.layers),
        classes=_classes(report),
        curve_in_words=describe_path(report.path),
        removed=[element.label for element in sorted(map(parse, report.removed), key=lambda element: element.layer)],
        knobs=[(name, value) for name, value in report.config.items() if value != default[name]],
    )


def shown(report: Report, plan: Plan, dimensions: Dimensions, loading: Loading, inside: str = "") -> dict[str, Any]:
    """The values that the templates of card and page share, by name."""
    assert report.finding is not None, "new reports have one"
    found = deployables(report.model_dump(mode="json"))
    return {
        "report": report,
        "title": _title(report),
        "name": name_of_model(report),
        "made": _made(report),
        "by_layer": by_layer(plan, dimensions) if len(report.removed) > MOST_NAMED else None,
        "finding": report.finding,
        "is_bad": report.finding.verdict in (FindingVerdict.NO_RELIABLE_GAIN, FindingVerdict.LOSS)
        or (report.target is not None and report.target.usable is False),
        "certificate": report.certificate,
        "deployed_path": deployed_path(report.model_dump(mode="json")),
        "path_title": PATH_TITLE,
        "deployables": None if found is None else replace(found, inside=inside),
        "first_look": first_look_of(report),
        "doubt": report.doubt,
        "confidence": f"{CONFIDENCE:.0%}",
        "before_and_after": before_and_after(report),
        "latency": _latency(report),
        "encoder": passage("encoder"),
        "path_in_words": _path(report),
        "path": path_table(report),
        "latency_of_a_point": passage("latency_of_a_point"),
        "map_in_words": describe_plan(plan, dimensions),
        "forms": forms_table(report),
        "forms_legend": forms_legend(report),
        "loading_forms": loading_forms((form.name for form in report.forms if form.made), loading, inside),
        "data": _data(report),
        "limits": _limits(report),
    }


def _made(report: Report) -> str:
    """How the model was made from the untouched one, and how a base model came to its head."""
    is_unchanged = not report.removed and not report.hard_attention and report.finetune is None
    if is_unchanged:
        made = passage("made_unchanged")
    else:
        made = passage_from(config_class(report.config).about.made, report=report, paper=PAPER)
    return made if report.head is None else f"{made} {passage('headed', report.head)}"


def _title(report: Report) -> str:
    """The name of the model with the result: how many times as fast, and the metric before and after."""
    found = deployables(report.model_dump(mode="json"))
    best = None if found is None else found.best
    if found is None or best is None:
        return f"{name_of_model(report)}: no form is shown to be both faster and as good"
    metric = "" if best.metric is None else f", {found.what} {found.before_and_after}"
    what = f"{TITLES[best.name]}, nothing pruned" if best.of_untouched else best.title
    return f"{name_of_model(report)}: {best.times:.1f} times as fast ({what}){metric}"


def _classes(report: Report) -> list[str]:
    """The names of the classes, the most frequent first; empty if answers are no classes."""
    data = report.data["validation"]
    return [] if data is None or data.shares is None else list(data.shares)[:_MOST_CLASSES]


def _data(report: Report) -> Table:
    """Every data set with its part in the result."""
    trained = report.finetune or report.head
    training = None if trained is None else trained.data
    calibration = None if report.refit is None else report.refit.data
    sets = {**report.data, "calibrate": calibration, "train": training}
    rows = [
        [
            name_of_data(report, _given_as(report, part)) or _UNNAMED,
            _CALIBRATED if data.labels_as == OWN_ANSWERS and part == "validation" else about,
            f"{data.rows:,}" + (f", {data.cut:,} of them cut" if data.cut else ""),
            f"`{data.sha256}`",
        ]
        for part, about in _PARTS.items()
        if (data := sets.get(part)) is not None
    ]
    return Table(["data", "what it did", "rows", "SHA-256"], rows)


def _given_as(report: Report, part: str) -> str:
    """The field of the run that a part is taken from."""
    if part in ("validation", "confirming"):
        return "validation" if "validation" in report.names else "unlabelled"
    return part


def _latency(report: Report) -> str:
    """The part of the latency gain that needs no removal; empty if there is none."""
    before, between, after = report.base.latency_ms, report.one_position_ms, report.pruned.latency_ms
    return "" if between is None else passage("latency", without_removal(before, between, after))


def _path(report: Report) -> str | None:
    """The path, which model on it was kept, and why; None if nothing was accepted."""
    if len(report.path) < 2:
        return None
    confirming = report.data.get("confirming")
    metric = "" if report.base.confirming is None else in_words(judging_metric(report.base.confirming, "confirming"))
    method = config_class(report.config)
    has_train = report.finetune is not None or "train" in report.names  # it trains nothing where nothing was removed
    is_trained = method.trains_path(report.config) and has_train
    is_otherwise = is_trained or report.config.get("polish")
    other = method.applied_otherwise(report.config, has_new_head=report.head is not None) if is_otherwise else None
    return passage("path", report, confirming, metric, report.certificate, limit_of(report), is_trained, other)


def _limits(report: Report) -> list[str]:
    """What the figures cover and what they do not."""
    return [
        *([] if report.dtype == "float32" else [passage("limit_of_precision", report.dtype)]),
        passage("limit_of_machine", report.environment),
        passage("limit_of_inputs", report.data["test"] is not None),
        *([] if report.certificate is None else [passage("limit_of_certificate")]),
        passage("limit_of_deciding"),
    ]
