"""What is shown of a job's report beside the job: the figures of lists and tables, and no list that grows with the model."""

from collections.abc import Mapping
from typing import Any

_SHOWN = (
    "base",
    "pruned",
    "comparison",
    "finding",
    "certificate",
    "one_position_ms",
    "estimated_speedup",
    "seconds",
    "orders",
    "finetune",
)


def summary_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """Parts of a report as they are, and how many elements and layers its lists name."""
    counts = {f"{name}_count": len(report.get(name, ())) for name in ("removed", "hard_attention")}
    return {name: report[name] for name in _SHOWN if name in report} | counts
