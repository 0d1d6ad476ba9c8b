"""Texts about jobs that several commands print."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from axformer.cli.display import duration
from axformer.client.answers import Job, JobProgress, JobReport, Place
from axformer.wire.metrics import in_words, judging_metric
from axformer.wire.states import JobKind, JobOutcome

NOTHING = "–"
_COLOURS = {"succeeded": "green", "failed": "red", "cancelled": "dim", "queued": "yellow", "paused": "yellow"}
_RUNNING = "cyan"
_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
_WIDE = 110
"""Columns of a terminal that shows whole ids beside names."""
_SHORT_ID = 8
"""Digits at the end of an id by which a narrower one shows it, and by which commands know the job."""


def knobs(start: str, changed: Mapping[str, Any]) -> str:
    """A preset or a goal, and the knobs that differ from it."""
    return ", ".join([start, *(f"{name}={value}" for name, value in changed.items())])


def state(name: str, outcome: str | None = None) -> Text:
    """A state in its colour; of a succeeded job that missed its target, or whose model is of no use, that."""
    if outcome is not None and outcome != JobOutcome.DONE:
        return Text(outcome.replace("_", " "), "red")
    return Text(name, _COLOURS.get(name, _RUNNING))


def progress(measured: JobProgress | None) -> str:
    """The progress of a pass in one cell."""
    return NOTHING if measured is None else f"{measured.done}/{measured.known}"


def change_of_loss(measured: JobProgress | None) -> str:
    """The change of the validation loss so far, in one narrow cell."""
    if measured is None or not measured.base_loss or measured.min_loss is None:
        return NOTHING
    return f"{measured.min_loss / measured.base_loss - 1:+.1%}"


def result(job: Job) -> str:
    """The result of a job's kept model in one cell, or its progress if it has no result."""
    if job.report is not None:
        figures = outcome(job.report)
        if figures.figure == "loss":
            return f"loss {figures.after / figures.before - 1:+.1%}"
        return f"{figures.words} {figures.after - figures.before:+.4f}"
    if job.kind == JobKind.ANALYSIS:
        found = len(job.findings or ())
        return f"{found} {'report' if found == 1 else 'reports'}" if found else NOTHING
    return NOTHING if job.progress is None else f"{progress(job.progress)} {change_of_loss(job.progress)}"


@dataclass(frozen=True)
class Outcome:
    """The most important figure of a report, before and after."""

    data: str
    """The data it was measured on, in words."""
    figure: str
    before: float
    after: float

    @property
    def words(self) -> str:
        """The figure's name for people."""
        return in_words(self.figure)


def outcome(report: JobReport) -> Outcome:
    """A metric on held-out data or else on confirming rows; without either, the validation loss."""
    for key, data in (("test", "held-out"), ("confirming", "confirming")):
        before, after = report.base.get(key), report.pruned.get(key)
        if before and after:
            figure = judging_metric(before, key)
            return Outcome(data, figure, before[figure], after[figure])
    return Outcome("validation", "loss", report.base["validation"]["loss"], report.pruned["validation"]["loss"])


def shown_id(job_id: str, width: int) -> str:
    """The id of a job, or its end where a terminal has few columns."""
    return job_id if width >= _WIDE else job_id[-_SHORT_ID:]


def list_of_jobs(width: int, columns: Sequence[str], rows: Iterable[tuple[str, str, Sequence[str | Text]]]) -> Table:
    """A table of jobs, one line each.

    Args:
        width: columns of the terminal; where they are few, ids and names are cut.
        columns: what is shown beside id, name and state.
        rows: id, name, and the cells from the state on, of each job.
    """
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for name in ("job", "name", "state", *columns):
        is_name = name == "name"
        table.add_column(name, no_wrap=not is_name, min_width=8, justify="right" if name in columns else "left")
    for job_id, name, cells in rows:
        shown = Text(name) if width >= _WIDE else Text(name, no_wrap=True, overflow="ellipsis")
        table.add_row(shown_id(job_id, width), shown, *cells)
    return table


def age(moment: datetime) -> str:
    """The time since a moment, in its largest unit."""
    return span((datetime.now(UTC) - moment).total_seconds())


def span(seconds: float | None) -> str:
    """A duration in its largest unit; a dash if there is none."""
    if seconds is None:
        return NOTHING
    size, name = next(((size, name) for size, name in _UNITS if seconds >= size), _UNITS[-1])
    return f"{max(seconds, 0.0) // size:.0f} {name}"


def place(where: Place) -> str:
    """The place of a waiting job, as the end of a sentence."""
    parts = [] if where.position is None else [f"at place {where.position}"]
    if where.starts_in_seconds is not None:
        parts.append(f"starts in about {duration(where.starts_in_seconds)}")
    if where.reason is not None:
        parts.append(where.reason)
    return ", ".join(parts)


def failure(job: Job) -> str:
    """Why a job did not succeed, in one line."""
    reason = job.error.message if job.error else job.status_reason
    has = "was" if job.state == "cancelled" else "has"
    return f"job {job.id} {has} {job.state}" + (f": {reason}" if reason else "")
