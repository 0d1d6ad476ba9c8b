"""The queue and the places in it as they are shown."""

from typing import Any

from api.schemas.queue import AheadRead, PlaceRead, QueuedJobRead, QueueRead, WorkersRead
from api.services.queue import Place, Queue
from store.tables.jobs import Job


def place_read(place: Place) -> PlaceRead:
    """A place as it is shown."""
    return PlaceRead(**_of_place(place))


def queue_read(queue: Queue) -> QueueRead:
    """The queue as it is shown."""
    return QueueRead(
        data=[_running(job, queue) for job in queue.active] + [_waiting(job, queue) for job in queue.queued],
        counts=dict(queue.counts),
        queued_of_all_teams=queue.queued_of_all_teams,
        workers_alive=sum(kind.alive for kind in queue.workers),
        workers_busy=sum(kind.busy for kind in queue.workers),
        workers=[WorkersRead(**vars(kind)) for kind in queue.workers],
        eta_method=queue.method,
        as_of=queue.as_of,
    )


def _running(job: Job, queue: Queue) -> QueuedJobRead:
    estimate = queue.running[job.id]
    unplaced: dict[str, Any] = dict.fromkeys(PlaceRead.model_fields)
    unplaced["ends_in_seconds"] = estimate.ends
    return QueuedJobRead(**_of_job(job), **unplaced)


def _waiting(job: Job, queue: Queue) -> QueuedJobRead:
    return QueuedJobRead(**_of_job(job), **_of_place(queue.places[job.id]))


def _of_job(job: Job) -> dict[str, Any]:
    return {"id": job.id, "name": job.name, "state": job.state, "device": job.device}


def _of_place(place: Place) -> dict[str, Any]:
    return {
        "position": place.position,
        "ahead": [AheadRead(team=one.team, jobs=one.jobs) for one in place.ahead],
        "waits_for": place.waits_for,
        "reason": place.reason,
        "starts_in_seconds": place.estimate.starts,
        "ends_in_seconds": place.estimate.ends,
    }
