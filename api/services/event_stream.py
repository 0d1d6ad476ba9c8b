"""Events of a job as server-sent events: the existing ones, then each new one until the job has ended.

All streams share one poll for news, and each reads its news in a short transaction. A stream holds nothing in between, so
idle watchers cost neither a connection nor a thread. The id of an event is its number: a caller that lost the connection
continues with ``Last-Event-ID``.

In between, ``job.progress`` tells how far a long phase is. Such messages are not stored and have no number, so the events of a
job stay few, and a stream goes on behind the last event.

Each read, each heartbeat and each word of progress checks the caller's key again: a revoked key receives nothing more.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.concurrency import run_in_threadpool

from api.resources import Resources
from api.views.jobs import fields_of
from axformer.wire.events import PROGRESS, EventRead, ProgressData
from axformer.wire.steps import Step
from store.repositories.events import events_after
from store.repositories.jobs import JobStanding
from store.repositories.keys import is_still_valid
from store.session import Sessions, session_scope
from store.states import TERMINAL, WORKING, JobState
from store.tables.jobs import Event

_RECONNECT_MS = 2000  # what browsers wait before they connect again
_LOG = structlog.get_logger(__name__)


async def stream(
    resources: Resources, key_id: str, job_id: str, after: int, standing: JobStanding | None
) -> AsyncIterator[bytes]:
    """The events after a number in the wire format, with word of progress, and a comment after a period of silence.

    Args:
        key_id: the caller's key; the stream ends when it becomes invalid.
        standing: the present state of the job.
    """
    settings = resources.settings
    yield format_sse_event(retry=_RECONNECT_MS)
    said, progress = time.monotonic(), EventProgress(settings.event_progress_seconds)
    while not resources.is_stopping:
        try:
            is_silent = time.monotonic() - said >= settings.event_heartbeat_seconds
            due = progress.due(standing)
            must_ask = is_silent or due is not None
            events, is_last = await _news(resources, key_id, job_id, after, standing, must_ask=must_ask)
            for event in events:
                after = event.seq
                yield format_sse_event(
                    data_str=fields_of(EventRead, event).model_dump_json(), event=event.type, id=str(event.seq)
                )
            if is_last:
                return
            if events:
                progress.wait()
                said = time.monotonic()
            elif due is not None:
                progress.told(due)
                said = time.monotonic()
                yield format_sse_event(data_str=as_event(due, after).model_dump_json(), event=PROGRESS)
            elif is_silent:
                said = time.monotonic()
                yield KEEPALIVE_COMMENT
            standing = await resources.standings.next(job_id)
        except (OperationalError, InterfaceError, PoolTimeoutError) as error:
            _LOG.warning("event_stream_waits_for_database", error=type(error).__name__)
            await asyncio.sleep(settings.event_poll_seconds)


async def _news(
    resources: Resources, key_id: str, job_id: str, after: int, standing: JobStanding | None, *, must_ask: bool
) -> tuple[Sequence[Event], bool]:
    """What happened to the job after this event, and whether no more will come: where the job has ended or is gone, or the key
    is no longer valid, which is looked up where there is news, or it must be."""
    if standing is None:
        return (), True
    has_ended = standing.state in TERMINAL
    has_news = standing.event_count > after
    if not (has_news or must_ask):
        return (), has_ended
    limit = resources.settings.page_limit_max if has_news else 0
    events = await run_in_threadpool(_read, resources.reading_sessions, key_id, job_id, after, limit)
    if events is None:
        return (), True
    # Events may be past retention, all of them too. One above the count has come since: the job was retried and goes on.
    return events, has_ended and (not events or events[-1].seq == standing.event_count)


def _read(sessions: Sessions, key_id: str, job_id: str, after: int, limit: int) -> Sequence[Event] | None:
    """Read up to ``limit`` events; None if the key is no longer valid."""
    with session_scope(sessions) as session:
        if not is_still_valid(session, key_id):
            return None
        return events_after(session, job_id, after=after, limit=limit).items if limit else ()


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
