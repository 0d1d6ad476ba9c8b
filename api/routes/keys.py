"""``/v1/keys``: the keys of a team, for its admins."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.deps import AdminDep, ReadingDep, SessionDep, SettingsDep
from api.http.paging import LimitDep
from api.openapi import answers
from api.services import keys
from api.views.keys import key_created, key_rotated, keys_page
from axformer.wire.keys import KeyCreate, KeyCreated, KeyRead, KeyRotate, KeyRotated
from axformer.wire.page import PageRead
from axformer.wire.scopes import Scope

router = APIRouter(prefix="/keys", tags=["keys"])


@router.get("", summary="List keys", responses=answers(200, "The team's keys, the newest first.", "keys", 401, 422))
def list_keys(
    caller: AdminDep,
    session: ReadingDep,
    limit: LimitDep,
    after: Annotated[str | None, Query(description="The `next` of the page before, which is a key's id.")] = None,
) -> PageRead[KeyRead, str]:
    """List your team's keys, including invalid ones. Their secrets are not stored."""
    return keys_page(keys.list_keys(session, caller.team_id, after=after, limit=limit.page))


@router.post(
    "", summary="Create a key", status_code=201, responses=answers(201, "The key, shown only once.", "key", 401, 422)
)
def post_key(body: KeyCreate, caller: AdminDep, session: SessionDep) -> KeyCreated:
    """Create a key for your team. Give each program its own, with the smallest scope that it needs."""
    most = max(body.scopes, key=lambda scope: Scope(scope).rank)
    return key_created(keys.create(session, caller, body.name, most, body.expires_at))


@router.post(
    "/{key_id}/rotate",
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
    "/{key_id}",
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
