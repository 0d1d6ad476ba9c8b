"""Follow a job: its events live, and its state with new trials. Both survive outages of the service."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus

import httpx2

from axformer.client.answers import Event, Job
from axformer.client.connection import Connection, reading
from axformer.client.errors import ServiceError
from axformer.client.patience import Outage, Patience, is_passing
from axformer.plan.trial import Trial
from axformer.wire.base import read_answer
from axformer.wire.events import PROGRESS

SSE = "text/event-stream"


@dataclass(frozen=True)
class Update:
    """News of a job: its state and its new trials."""

    job: Job
    trials: Sequence[Trial]


def events_of(
    connection: Connection, path: str, after: int, has_ended: Callable[[], bool], *, with_progress: bool = False
) -> Iterator[Event]:
    """The events of a job after number ``after``, each once and in order, until the job has ended.

    A broken stream is reopened after the last event (``Last-Event-ID``). ``with_progress`` yields ``job.progress`` too, whose
    ``seq`` is that of the event before it.

    Raises:
        ServiceError: the service refuses, or has been away for too long.
    """
    outage = Outage(connection.patience)
    while True:
        before = after
        try:
            for event in _stream(connection, path, after):
                outage.is_over()
                if event is not None and (with_progress or event.type != PROGRESS):
                    after = event.seq
                    yield event
            # Events past retention are not sent, so a stream may end without the last one.
            if after == before and has_ended():
                return
            time.sleep(connection.patience.first_wait)
        except ServiceError as error:
            outage.wait(error)


def _stream(connection: Connection, path: str, after: int) -> Iterator[Event | None]:
    """The events of one stream; None for other messages, such as the reconnect time."""
    patience = connection.patience
    timeout = httpx2.Timeout(patience.silence, connect=patience.connect)
    headers = {"Accept": SSE, "Last-Event-ID": str(after)}
    with connection.open("GET", f"{path}/events", headers=headers, timeout=timeout) as answer:
        if answer.status_code == HTTPStatus.NO_CONTENT:
            return
        with reading(answer):
            for sent in httpx2.EventSource(answer):
                yield read_answer(Event, sent.data) if sent.data else None


def updates_of(
    look: Callable[[], Job],
    trials_after: Callable[[int], Iterator[Trial]],
    patience: Patience,
    *,
    every: float,
    lost: Callable[[ServiceError], None],
) -> Iterator[Update]:
    """Poll a job with its new trials until it has ended; the last poll has all remaining trials. ``lost`` is called with each
    failure before a retry.

    Raises:
        ServiceError: the service refuses, or has been away for too long.
    """
    outage, seen = Outage(patience), -1
    while True:
        try:
            # The job is read before its trace, so no trial of an ended job is missed.
            job = look()
            trials = list(trials_after(seen))
        except ServiceError as error:
            if is_passing(error):
                lost(error)
            outage.wait(error)
            continue
        outage.is_over()
        yield Update(job, trials)
        seen = trials[-1].seq if trials else seen
        if job.has_ended:
            return
        time.sleep(every)
