"""Events of a job as server-sent events: the existing ones, then each new one until the job has ended.

All streams share one poll for news, and each reads its news in a short transaction. A stream holds nothing in between, so
idle watchers cost neither a connection nor a thread. The id of an event is its number: a caller that lost the connection
continues with ``Last-Event-ID``.

In between, ``job.progress`` tells how far a long phase is (``api.services.event_progress``).

Each read, each heartbeat and each word of progress checks the caller's key again: a revoked key receives nothing more.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import structlog
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.concurrency import run_in_threadpool

from api.resources import Resources
from api.services.event_progress import EventProgress, as_event
from api.views.rows import event_read
from axformer.wire.events import PROGRESS
from store.repositories.events import events_after
from store.repositories.jobs import JobStanding
from store.repositories.keys import is_still_valid
from store.session import Sessions, session_scope
from store.states import TERMINAL
from store.tables.events import Event

_RECONNECT_MS = 2000  # what browsers wait before they connect again
_LOG = structlog.get_logger(__name__)


@dataclass(frozen=True)
class News:
    """Events after a number, and whether no more will come."""

    events: Sequence[Event]
    is_last: bool


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
            news = await _news(resources, key_id, job_id, after, standing, must_ask=is_silent or due is not None)
            for event in news.events:
                after = event.seq
                yield format_sse_event(
                    data_str=event_read(event).model_dump_json(), event=event.type, id=str(event.seq)
                )
            if news.is_last:
                return
            if news.events:
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
) -> News:
    """What happened to the job after this event. It is the last where the job has ended or is gone, or the key is no longer
    valid, which is looked up where there is news, or it must be."""
    if standing is None:
        return News((), is_last=True)
    has_ended = standing.state in TERMINAL
    has_news = standing.event_count > after
    if not (has_news or must_ask):
        return News((), is_last=has_ended)
    limit = resources.settings.page_limit_max if has_news else 0
    events = await run_in_threadpool(_read, resources.reading_sessions, key_id, job_id, after, limit)
    if events is None:
        return News((), is_last=True)
    # Events may be past retention, all of them too. One above the count has come since: the job was retried and goes on.
    return News(events, is_last=has_ended and (not events or events[-1].seq == standing.event_count))


def _read(sessions: Sessions, key_id: str, job_id: str, after: int, limit: int) -> Sequence[Event] | None:
    """Read up to ``limit`` events; None if the key is no longer valid."""
    with session_scope(sessions) as session:
        if not is_still_valid(session, key_id):
            return None
        return events_after(session, job_id, after=after, limit=limit).items if limit else ()
