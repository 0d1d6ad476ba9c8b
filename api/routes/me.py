"""``/v1/me``: whose key this is and what it may do."""

from fastapi import APIRouter

from api.deps import CallerDep, ReadingDep
from api.openapi import answers
from api.services import keys
from api.views.keys import key_read
from axformer.wire.keys import MeRead, TeamRead

router = APIRouter(prefix="/me", tags=["keys"])


@router.get("", summary="See your team and key", responses=answers(200, "Team and key.", "me", 401))
def get_me(caller: CallerDep, session: ReadingDep) -> MeRead:
    """See the team, the id and the scope of your key."""
    key = keys.find(session, caller.team_id, caller.key_id)
    return MeRead(team=TeamRead(id=caller.team_id, name=caller.team_name), key=key_read(key))
