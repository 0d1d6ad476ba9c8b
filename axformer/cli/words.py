"""Figures of jobs in the words that several commands print."""

from datetime import UTC, datetime

from rich.text import Text

from axformer.cli.display import duration
from axformer.client.answers import Job, JobProgress, Place

NOTHING = "–"
_COLOURS = {"succeeded": "green", "failed": "red", "cancelled": "dim", "queued": "yellow", "paused": "yellow"}
_RUNNING = "cyan"
_DAY = 86400.0


def state(name: str) -> Text:
    """A state in its colour."""
    return Text(name, _COLOURS.get(name, _RUNNING))


def progress(made: JobProgress | None) -> str:
    """How far a pass is, in one cell."""
    return NOTHING if made is None else f"{made.done}/{made.known}"


def change_of_loss(job: Job) -> str:
    """What the pass has done to the validation loss so far, in one cell."""
    made = job.progress
    if made is None or made.base_loss is None or made.min_loss is None:
        return NOTHING
    return f"{made.base_loss:.4f} → {made.min_loss:.4f}"


def age(moment: datetime) -> str:
    """How long ago something was."""
    seconds = (datetime.now(UTC) - moment).total_seconds()
    if seconds >= _DAY:
        return f"{seconds // _DAY:.0f} d ago"
    return f"{duration(max(seconds, 0.0))} ago"


def place(where: Place) -> str:
    """Where a waiting job stands, as the end of a sentence."""
    parts = [] if where.position is None else [f"at place {where.position}"]
    if where.starts_in_seconds is not None:
        parts.append(f"starts in about {duration(where.starts_in_seconds)}")
    if where.reason is not None:
        parts.append(where.reason)
    return ", ".join(parts)


def failure(job: Job) -> str:
    """Why a job has not succeeded, in one line."""
    reason = job.error.message if job.error else job.status_reason
    has = "was" if job.state == "cancelled" else "has"
    return f"job {job.id} {has} {job.state}" + (f": {reason}" if reason else "")
