"""The part of a report that is shown with its job: figures for lists and tables, but no list that grows with the model or its
training."""

from collections.abc import Mapping
from typing import Any, get_args

from axformer.wire.analysis import ANALYSIS_FORMAT, ReportName
from axformer.wire.jobs import ReportRead
from axformer.wire.states import JobOutcome

_MOST_CLASSES = 10
"""Classes of a comparison that are shown, those that lost most."""


def summary_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """Selected parts of a report, and the number of elements and layers in its lists; of an analysis its findings."""
    if report.get("format") == ANALYSIS_FORMAT:
        return {"findings": findings_of(report)}
    counts = {f"{name}_count": len(report.get(name, ())) for name in ("removed", "hard_attention")}
    shown = {name: report[name] for name in ReportRead.model_fields if name in report} | counts
    trained = {name: {**shown[name], "curve": []} for name in ("finetune", "head") if shown.get(name) is not None}
    if shown.get("head") is not None:
        trained["head"]["labels"] = []  # the job's run has those that were asked for
    return {name: _without_most_classes(value) for name, value in (shown | trained).items()}


def _without_most_classes(value: Any) -> Any:
    """A part of a report in which each comparison names the first classes only: a model may have 100,000."""
    if isinstance(value, list):
        return [_without_most_classes(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: inner[:_MOST_CLASSES] if name == "classes" and isinstance(inner, list) else _without_most_classes(inner)
        for name, inner in value.items()
    }


def findings_of(analysis: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The last line of each report of an analysis, in their order."""
    made = ((name, analysis["reports"][name]) for name in get_args(ReportName))
    return [{"report": name, **report["advice"]} for name, report in made if report is not None]


def outcome_of(summary: Mapping[str, Any] | None) -> JobOutcome | None:
    """What became of a succeeded job; None for any other, which has no summary."""
    if summary is None:
        return None
    target = summary.get("target")
    if target is None:
        return JobOutcome.DONE
    if not target["reached"]:
        return JobOutcome.TARGET_MISSED
    return JobOutcome.NOT_USABLE if target.get("usable") is False else JobOutcome.DONE
