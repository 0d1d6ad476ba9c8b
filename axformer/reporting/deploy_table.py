"""What can be deployed: the untouched model and each form of the result, with what each costs and brings.

Computed from the content of a ``report.json`` alone, so that command line, card, page and service show the same. No PyTorch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from axformer.reporting.deployable import AGREEMENT, BEFORE, MANY, Deployable, Deployables
from axformer.reporting.markdown import word
from axformer.reporting.rendering import Table, number
from axformer.reporting.standing import UNJUDGED, UNLABELLED, judgement_of
from axformer.scores.paired_tests import ALPHA
from axformer.wire.metrics import LOWER_IS_BETTER, PEARSON, SAME_NEAREST, in_words, judging_metric
from axformer.wire.report import PathPoint
from axformer.wire.verdicts import JudgedRows, Judgement

DATA = {"test": "held-out", "confirming": "confirming", "validation": "validation", UNLABELLED: "unlabelled"}
"""The names of data sets for people, the least biased first."""
PATH_TITLE = "The path in ONNX int8"
_POINTS_OF_A_WISH = 5.0
"""What a form may cost where a size or a speed was asked for, in reports of earlier versions, which do not say."""
_POINTS = 1.0
"""The same where nothing was asked for."""


def deployables(report: Mapping[str, Any]) -> Deployables | None:
    """The forms of a result.

    Args:
        report: the content of a ``report.json``, or the part of it that is shown with a job. Figures that a report of an
            earlier version lacks are unknown.

    Returns:
        None if the report has no forms.
    """
    base, forms = report.get("base_form"), [form for form in report.get("forms") or () if form["made"]]
    if base is None or not forms:
        return None
    before = [form for form in report.get("before_forms") or () if form["made"]]
    every = (base, *before, *forms)
    given = report.get("judged")
    judged = _judged_before(report, every) if given is None else JudgedRows.model_validate(given)
    data = judged.data or ("test" if all(form.get("test") for form in every) else "validation")
    metric = judging_metric(base.get(data) or forms[0].get(data) or {}, data)
    is_whole = is_untouched(report)
    rows = [_deployable(form, base, metric, data, judged) for form in every]
    rows = [
        replace(
            row,
            of_untouched=(is_whole and row.seq is None) or index <= len(before),
            directory=None if index <= len(before) else row.directory,
        )
        for index, row in enumerate(rows)
    ]
    return Deployables(metric, DATA[data], judged, rows)


def deployed_path(report: Mapping[str, Any]) -> Table | None:
    """What each model of the path is worth in ONNX int8, the kept one marked.

    Args:
        report: the content of a ``report.json``.

    Returns:
        None if no model of the path was measured so.
    """
    path = [PathPoint.model_validate(one) for one in report.get("path") or []]
    points = [(point, point.deployed) for point in path if point.deployed is not None]
    if not points:
        return None
    data = points[0][1].data
    metric = judging_metric(report["base"].get(data) or report["base"]["validation"], data)
    what = "answered as before" if data == UNLABELLED or metric == SAME_NEAREST else f"{DATA[data]} {in_words(metric)}"
    what = AGREEMENT if data == UNLABELLED and metric == PEARSON else what
    head = ["", "operations", what, "times as fast", "answers changed", "one input, ms", "MB"]
    scale = 1 if metric in LOWER_IS_BETTER else 100
    rows = [
        [
            ("trial " + str(point.seq) if point.seq else "untouched") + (" (kept)" if point.kept else ""),
            f"{point.operations / path[0].operations:.0%}",
            "{1:+.2f} [{0:+.2f}, {2:+.2f}]".format(*(scale * end for end in one.change)),
            "{1:.2f} [{0:.2f}, {2:.2f}]".format(*one.times),
            number(one.changed, ".1%"),
            f"{one.milliseconds:.2f}",
            f"{one.bytes / 1e6:.1f}",
        ]
        for point, one in points
    ]
    return Table(head, rows)


def is_untouched(report: Mapping[str, Any]) -> bool:
    """Whether the finished model is the untouched one."""
    counts = [report.get(f"{name}_count", len(report.get(name) or ())) for name in ("removed", "hard_attention")]
    known = "removed" in report or "removed_count" in report
    return known and not any(counts) and report.get("finetune") is None


def _judged_before(report: Mapping[str, Any], forms: Iterable[Mapping[str, Any]]) -> JudgedRows:
    """What forms are judged by in a report of an earlier version: their intervals alone."""
    has_test = all(form.get("test") for form in forms)
    certificate, target = report.get("certificate"), report.get("target")
    points = _POINTS if target is None else _POINTS_OF_A_WISH
    allowed = points if certificate is None else certificate["points"]
    return JudgedRows(data="test" if has_test else None, rows=0, points=allowed)


def _deployable(
    form: Mapping[str, Any], base: Mapping[str, Any], metric: str, data: str, judged: JudgedRows
) -> Deployable:
    one, many, before = own_speed(form, 1), own_speed(form, MANY), own_speed(base, 1)
    value, reference = ((side.get(data) or {}).get(metric) for side in (form, base))
    cost = form.get("cost") or (form.get("test_change") if data == "test" else None)
    difference = ((cost or {}).get("differences") or {}).get(metric)
    is_base, ratio = form["name"] == base["name"], None if one is None else one.get("times")
    if ratio is None and one is not None and before is not None:
        ratio = before["p50_ms"] / one["p50_ms"]
    ends = None if one is None else one.get("times_interval")
    changed = (cost or {}).get("changed")
    return Deployable(
        name=BEFORE if is_base else form["name"],
        directory=form.get("directory"),
        metric=value,
        change=None if is_base or value is None or reference is None else value - reference,
        interval=None if difference is None else tuple(difference["interval"]),
        milliseconds=None if one is None else one["p50_ms"],
        times=ratio,
        per_second=None if many is None else many["inputs_per_second"],
        bytes=form.get("bytes"),
        times_interval=None if ends is None else tuple(ends),
        judgement=_judgement(form, {**form, "cost": cost}, base, metric, judged),
        changed=None if changed is None or not judged.rows else changed / judged.rows,
        lost_class="" if data == UNLABELLED else _lost_class(cost or {}),
        processor_share=None if one is None else one.get("processor_share"),
        seq=form.get("seq"),
    )


def _judgement(
    form: Mapping[str, Any], with_cost: Mapping[str, Any], base: Mapping[str, Any], metric: str, judged: JudgedRows
) -> Judgement:
    """What the report says, which took a while to work out; else worked out."""
    if form["name"] == base["name"]:
        return UNJUDGED
    known = form.get("judgement")
    return judgement_of(with_cost, base, metric, judged) if known is None else Judgement.model_validate(known)


def _lost_class(cost: Mapping[str, Any]) -> str:
    worst = next(iter(cost.get("classes") or ()), None)
    if worst is None or worst["after"] >= worst["before"] or worst["p_value"] > ALPHA:
        return ""
    return (
        f"The class '{word(worst['name'])}' loses: {worst['before']:.1%} of its {worst['count']:,} were found before, "
        f"{worst['after']:.1%} are now."
    )


def own_speed(form: Mapping[str, Any], batch: int) -> Mapping[str, Any] | None:
    """The speed at the data's own lengths in batches of a size; None if it was not measured."""
    cells: Iterable[Mapping[str, Any]] = form.get("speed") or ()
    return next((cell for cell in cells if cell["length"] is None and cell["batch"] == batch), None)
