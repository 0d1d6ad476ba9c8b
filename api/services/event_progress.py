"""Word of a long phase in an event stream: what the worker does, and how far it is.

Such messages are not stored and have no number, so the events of a job stay few, and a stream goes on behind the last event.
"""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from axformer.wire.events import PROGRESS, EventRead, ProgressData
from axformer.wire.steps import Step
from store.repositories.jobs import JobStanding
from store.states import WORKING, JobState

_PHASES = {
    JobState.FETCHING: "the checkpoint and the data are being fetched",
    JobState.VALIDATING: "the checkpoint and the data are being checked and loaded",
    JobState.PACKAGING: "the result is being measured and written",
}


@dataclass
class EventProgress:
    """What one stream has told of its job, and when."""

    every: float
    """Seconds between two messages, and between an event and the first message after it."""
    _last: ProgressData | None = None
    _at: float = field(default_factory=time.monotonic)

    def due(self, standing: JobStanding | None) -> ProgressData | None:
        """What to tell now; None if nothing is new, or it is too early."""
        if standing is None or standing.state not in WORKING or time.monotonic() - self._at < self.every:
            return None
        data = progress_of(standing)
        return None if data == self._last else data

    def told(self, data: ProgressData) -> None:
        """Note that this was told."""
        self._last, self._at = data, time.monotonic()

    def wait(self) -> None:
        """Note that an event was told, which says as much."""
        self._at = time.monotonic()


def progress_of(standing: JobStanding) -> ProgressData:
    """How far a job is that a worker has."""
    step = None if standing.step is None else Step.model_validate(standing.step, extra="ignore")
    if standing.state is JobState.PACKAGING and step is not None:
        left = standing.seconds_left
        return ProgressData(state=standing.state, message=f"{step.sentence}{_left(left)}", seconds_left=left, step=step)
    if standing.state is not JobState.RUNNING:
        return ProgressData(state=standing.state, message=_PHASES[standing.state])
    if standing.done is None or standing.known is None:
        return ProgressData(state=standing.state, message="the untouched model is being looked at")
    done, known, seconds_left = standing.done, standing.known, standing.seconds_left
    if known == 0:  # an analysis, which has no trials
        message = "the reports are being made" if step is None else f"{step.sentence}{_left(step.seconds_left)}"
        return ProgressData(state=standing.state, message=message, step=step)
    if done >= known:
        message = f"all {known} known trials are done; the result is being made of them"
    else:
        message = f"{done} of {known} known trials are done{_left(seconds_left)}"
    if step is not None:
        message += f"; {step.sentence}{_left(step.seconds_left)}"
    return ProgressData(
        state=standing.state, message=message, done=done, known=known, seconds_left=seconds_left, step=step
    )


def _left(seconds: float | None) -> str:
    return "" if seconds is None else f", about {seconds:.0f} s left"


def as_event(data: ProgressData, after: int) -> EventRead:
    """The message in the form of an event. Its number is that of the event before it, so that nobody goes on elsewhere."""
    return EventRead(seq=after, type=PROGRESS, data=data.model_dump(mode="json"), created_at=datetime.now(UTC))
