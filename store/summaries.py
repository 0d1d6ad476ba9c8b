"""The part of a report that is shown with its job: figures for lists and tables, but no list that grows with the model or its
training."""

from collections.abc import Mapping
from typing import Any, get_args

from axformer.wire.analysis import ANALYSIS_FORMAT, ReportName
from axformer.wire.states import JobOutcome

_SHOWN = (
    "base",
    "pruned",
    "comparison",
    "finding",
    "certificate",
    "doubt",
    "target",
    "one_position_ms",
    "base_form",
    "before_forms",
    "judged",
    "advice",
    "forms",
    "estimated_speedup",
    "seconds",
    "finetune",
    "head",
)


def summary_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """Selected parts of a report, and the number of elements and layers in its lists; of an analysis its findings."""
    if report.get("format") == ANALYSIS_FORMAT:
        return {"findings": findings_of(report)}
    counts = {f"{name}_count": len(report.get(name, ())) for name in ("removed", "hard_attention")}
    shown = {name: report[name] for name in _SHOWN if name in report} | counts
    trained = {name: {**shown[name], "curve": []} for name in ("finetune", "head") if shown.get(name) is not None}
    return shown | trained


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
