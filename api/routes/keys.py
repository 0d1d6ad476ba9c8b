"""``/v1/keys``, ``/v1/me`` and ``/v1/audit``: the keys of a team, whose key this is, and who changed what."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.deps import AdminDep, CallerDep, ReadingDep, SessionDep, SettingsDep
from api.http.paging import MOST_NUMBER, LimitDep
from api.openapi import answers
from api.services import keys
from api.views.rows import audit_page, key_created, key_read, key_rotated, keys_page
from axformer.wire.base import PageRead
from axformer.wire.keys import AuditRead, KeyCreate, KeyCreated, KeyRead, KeyRotate, KeyRotated, MeRead, TeamRead
from axformer.wire.scopes import Scope
from store.repositories.audit import entries_before

router = APIRouter(tags=["keys"])


@router.get(
    "/keys", summary="List keys", responses=answers(200, "The team's keys, the newest first.", "keys", 401, 422)
)
def list_keys(
    caller: AdminDep,
    session: ReadingDep,
    limit: LimitDep,
    after: Annotated[str | None, Query(description="The `next` of the page before, which is a key's id.")] = None,
) -> PageRead[KeyRead, str]:
    """List your team's keys, including invalid ones. Their secrets are not stored."""
    return keys_page(keys.list_keys(session, caller.team_id, after=after, limit=limit.page))


@router.post(
    "/keys",
    summary="Create a key",
    status_code=201,
    responses=answers(201, "The key, shown only once.", "key", 401, 422),
)
def post_key(body: KeyCreate, caller: AdminDep, session: SessionDep) -> KeyCreated:
    """Create a key for your team. Give each program its own, with the smallest scope that it needs."""
    most = max(body.scopes, key=lambda scope: Scope(scope).rank)
    return key_created(keys.create(session, caller, body.name, most, body.expires_at))


@router.post(
    "/keys/{key_id}/rotate",
    summary="Rotate a key",
    status_code=201,
    responses=answers(201, "The new key, shown only once.", "key_rotated", 401, 404, 409, 422),
)
def rotate_key(
    key_id: str, caller: AdminDep, session: SessionDep, settings: SettingsDep, body: KeyRotate | None = None
) -> KeyRotated:
    """Create a new key with the same name and scope. The old one stays valid for a day, or for `grace_hours`.

    A key with an expiry is replaced by one with the same lifetime from now on.
    """
    return key_rotated(keys.replace(session, settings, caller, key_id, body.grace_hours if body else None))


@router.delete(
    "/keys/{key_id}",
    summary="Revoke a key",
    status_code=204,
    responses=answers(204, "The key is not valid any more.", None, 401, 404, 409, 422),
)
def delete_key(
    key_id: str,
    caller: AdminDep,
    session: SessionDep,
    even_last: Annotated[bool, Query(description="Also where your team then has no admin.")] = False,
) -> None:
    """Revoke a key at once; it stays listed. The last admin key is kept unless `even_last` is set."""
    keys.revoke(session, caller, key_id, even_last=even_last)


@router.get("/me", summary="See your team and key", responses=answers(200, "Team and key.", "me", 401))
def get_me(caller: CallerDep, session: ReadingDep) -> MeRead:
    """See the team, the id and the scope of your key."""
    key = keys.find(session, caller.team_id, caller.key_id)
    return MeRead(team=TeamRead(id=caller.team_id, name=caller.team_name), key=key_read(key))


@router.get(
    "/audit",
    summary="List who changed what",
    responses=answers(200, "The entries, the newest first.", "audit", 401, 422),
)
def list_audit(
    caller: AdminDep,
    session: ReadingDep,
    limit: LimitDep,
    after: Annotated[int | None, Query(ge=0, le=MOST_NUMBER, description="The `next` of the page before.")] = None,
) -> PageRead[AuditRead, int]:
    """List the changes with their keys and addresses, and the attempts to use invalid keys of your team."""
    return audit_page(entries_before(session, caller.team_id, before=after, limit=limit.page))
