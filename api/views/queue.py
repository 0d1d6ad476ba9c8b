"""The queue and places in it as the API shows them."""

from typing import Any

from api.services.estimates import WaitingTime
from api.services.queue import Place, Queue
from axformer.wire.queue import PlaceRead, QueuedJobRead, QueueRead, WorkersRead
from store.repositories.queue import Waiting
from store.tables.jobs import Job


def place_read(place: Place) -> PlaceRead:
    """A place as it is shown."""
    return PlaceRead(**_of_place(place))


def queue_read(queue: Queue) -> QueueRead:
    """The queue as it is shown."""
    return QueueRead(
        data=[_running(*entry) for entry in queue.active] + [_waiting(*entry) for entry in queue.waiting],
        counts=dict(queue.counts.items()),
        queued_of_all_teams=queue.queued_of_all_teams,
        workers_alive=sum(kind.alive for kind in queue.workers),
        workers_busy=sum(kind.busy for kind in queue.workers),
        workers=[WorkersRead(**vars(kind)) for kind in queue.workers],
        eta_method=queue.method,
        as_of=queue.as_of,
    )


def _running(job: Job, estimate: WaitingTime) -> QueuedJobRead:
    unplaced: dict[str, Any] = dict.fromkeys(PlaceRead.model_fields)
    unplaced["ends_in_seconds"] = estimate.ends
    return QueuedJobRead(id=job.id, name=job.name, state=job.state, device=job.device, **unplaced)


def _waiting(job: Waiting, place: Place) -> QueuedJobRead:
    return QueuedJobRead(id=job.job_id, name=job.name, state=job.state, device=job.device, **_of_place(place))


def _of_place(place: Place) -> dict[str, Any]:
    return {
        "position": place.position,
        "ahead": place.ahead,
        "waits_for": place.waits_for,
        "reason": place.reason,
        "starts_in_seconds": place.estimate.starts,
        "ends_in_seconds": place.estimate.ends,
    }
