"""``/v1/queue``: where a team's jobs stand."""

from fastapi import APIRouter

from api.deps import CallerDep, SessionDep, SettingsDep
from api.openapi import answers
from api.schemas.queue import QueueRead
from api.services import queue
from api.views import queue_read

router = APIRouter(prefix="/queue", tags=["queue"])


@router.get("", responses=answers(200, "The queue now.", "queue", 401))
def get_queue(caller: CallerDep, session: SessionDep, settings: SettingsDep) -> QueueRead:
    """See your team's unfinished jobs with position and estimated times, and how the estimate was made."""
    return queue_read(queue.look(session, settings, caller.team_id))
