"""``/v1/queue``: where a team's jobs stand."""

from fastapi import APIRouter

from api.deps import CallerDep, ReadingDep, SettingsDep
from api.openapi import answers
from api.queue_views import queue_read
from api.schemas.queue import QueueRead
from api.services import queue

router = APIRouter(prefix="/queue", tags=["queue"])


@router.get("", responses=answers(200, "The queue now.", "queue", 401))
def get_queue(caller: CallerDep, session: ReadingDep, settings: SettingsDep) -> QueueRead:
    """See your team's unfinished jobs with position and estimated times, and how the estimate was made.

    Of other teams only numbers are shown.
    """
    return queue_read(queue.look(session, settings, caller.team_id))
