"""``/v1/queue``: the places of a team's jobs."""

from fastapi import APIRouter, Response

from api.deps import CallerDep, ReadingDep, ResourcesDep
from api.http.answers import as_json
from api.openapi import answers
from api.services import queue
from api.views.jobs import queue_read
from axformer.wire.queue import QueueRead

router = APIRouter(prefix="/queue", tags=["queue"])


@router.get(
    "", summary="See the queue", response_model=QueueRead, responses=answers(200, "The queue now.", "queue", 401)
)
def get_queue(caller: CallerDep, session: ReadingDep, resources: ResourcesDep) -> Response:
    """See your team's unfinished jobs with position and estimated times, and how the estimate was made.

    Of other teams only counts are shown. All requests within a second get the same snapshot; `as_of` is its time.
    """
    seen = queue.look(session, resources.queue_views.get(), caller, resources.settings.page_limit_max)
    return as_json(queue_read(seen))
