"""The part of a report that is shown with its job: figures for lists and tables, but no list that grows with the model or its
training."""

from collections.abc import Mapping
from typing import Any

from axformer.wire.states import JobOutcome

_SHOWN = (
    "base",
    "pruned",
    "comparison",
    "finding",
    "certificate",
    "target",
    "one_position_ms",
    "base_form",
    "forms",
    "estimated_speedup",
    "seconds",
    "orders",
    "finetune",
    "head",
)


def summary_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """Selected parts of a report, and the number of elements and layers in its lists."""
    counts = {f"{name}_count": len(report.get(name, ())) for name in ("removed", "hard_attention")}
    shown = {name: report[name] for name in _SHOWN if name in report} | counts
    trained = {name: {**shown[name], "curve": []} for name in ("finetune", "head") if shown.get(name) is not None}
    return shown | trained


def outcome_of(summary: Mapping[str, Any] | None) -> JobOutcome | None:
    """What became of a succeeded job; None for any other, which has no summary."""
    if summary is None:
        return None
    target = summary.get("target")
    return JobOutcome.TARGET_MISSED if target is not None and not target["reached"] else JobOutcome.DONE
