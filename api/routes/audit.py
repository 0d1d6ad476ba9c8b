"""``/v1/audit``: who changed what in a team, for its admins."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.deps import AdminDep, ReadingDep
from api.http.paging import MOST_NUMBER, LimitDep
from api.openapi import answers
from api.views.keys import audit_page
from axformer.wire.audit import AuditRead
from axformer.wire.page import PageRead
from store.repositories.audit import entries_before

router = APIRouter(prefix="/audit", tags=["keys"])


@router.get(
    "", summary="List who changed what", responses=answers(200, "The entries, the newest first.", "audit", 401, 422)
)
def list_audit(
    caller: AdminDep,
    session: ReadingDep,
    limit: LimitDep,
    after: Annotated[int | None, Query(ge=0, le=MOST_NUMBER, description="The `next` of the page before.")] = None,
) -> PageRead[AuditRead, int]:
    """List the changes with their keys and addresses, and the attempts to use invalid keys of your team."""
    return audit_page(entries_before(session, caller.team_id, before=after, limit=limit.page))
