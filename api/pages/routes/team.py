"""The team's keys, the secrets of its webhooks, and its audit log, for admins."""

from collections.abc import Sequence
from datetime import UTC, datetime, time
from itertools import groupby
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import TypeAdapter, ValidationError
from sqlalchemy.orm import Session
from starlette.responses import RedirectResponse, Response

from api.deps import ReadingDep, ResourcesDep, SessionDep, SettingsDep
from api.errors import InvalidInputError
from api.http.paging import MOST_NUMBER
from api.pages.context import PAGE_HEADERS, Pages
from api.pages.deps import AdminDep, FormDep, PagesDep, Visitor
from api.resources import Resources
from api.services import keys, webhooks
from api.views.rows import audit_page, keys_page
from axformer.wire.base import Name
from axformer.wire.keys import AuditRead
from axformer.wire.scopes import Scope
from store.repositories.audit import entries_before
from store.repositories.deliveries import valid_secrets
from store.session import session_scope
from store.settings import Settings

router = APIRouter(prefix="/team")

_NAME: TypeAdapter[str] = TypeAdapter(Name)


@router.get("")
def show_team(
    visitor: AdminDep,
    session: ReadingDep,
    settings: SettingsDep,
    pages: PagesDep,
    before: Annotated[int | None, Query(ge=0, le=MOST_NUMBER)] = None,
) -> Response:
    """The page."""
    return pages.answer("team.html", visitor=visitor, **_values(session, settings, visitor, before))


@router.post("/keys")
def make_key(visitor: AdminDep, sent: FormDep, resources: ResourcesDep, pages: PagesDep) -> Response:
    """Create a key, and show it once."""
    try:
        name = _NAME.validate_python(str(sent.get("name", "")).strip())
        scope = Scope(str(sent.get("scope", "")))
        expires_at = _end_of(str(sent.get("expires", "")))
    except (ValidationError, ValueError):
        raise InvalidInputError(
            "a key needs a name of 1 to 200 characters, a scope, and perhaps a day on which it ends; go back and fill them in"
        ) from None
    with session_scope(resources.sessions) as session:
        text = keys.create(session, visitor.caller, name, scope, expires_at).text
    return _with_new(pages, resources, visitor, new_key=text)


@router.post("/keys/{key_id}/rotate")
def replace_key(key_id: str, visitor: AdminDep, _: FormDep, resources: ResourcesDep, pages: PagesDep) -> Response:
    """Replace a key by a new one, and show that once."""
    with session_scope(resources.sessions) as session:
        text = keys.replace(session, resources.settings, visitor.caller, key_id, None).new.text
    return _with_new(pages, resources, visitor, new_key=text)


@router.post("/keys/{key_id}/revoke")
def revoke_key(key_id: str, visitor: AdminDep, _: FormDep, session: SessionDep) -> Response:
    """Revoke a key at once, unless it is the last admin key."""
    keys.revoke(session, visitor.caller, key_id, even_last=False)
    return RedirectResponse("/team", 303, headers=PAGE_HEADERS)


@router.post("/webhook-secrets")
def make_secret(
    visitor: AdminDep, _: FormDep, resources: ResourcesDep, settings: SettingsDep, pages: PagesDep
) -> Response:
    """Create a secret that signs the team's webhooks, and show it once."""
    with session_scope(resources.sessions) as session:
        made = webhooks.create_secret(session, settings, visitor.caller)
    return _with_new(pages, resources, visitor, new_secret=made.text)


@router.post("/webhook-secrets/{secret_id}/delete")
def delete_secret(secret_id: str, visitor: AdminDep, _: FormDep, session: SessionDep) -> Response:
    """Delete a secret, which stops signing."""
    webhooks.delete_secret(session, visitor.caller, secret_id)
    return RedirectResponse("/team", 303, headers=PAGE_HEADERS)


def _with_new(pages: Pages, resources: Resources, visitor: Visitor, **new: str) -> Response:
    with session_scope(resources.reading_sessions) as session:
        values = _values(session, resources.settings, visitor, None)
    return pages.answer("team.html", visitor=visitor, **(values | new))


def _values(session: Session, settings: Settings, visitor: Visitor, before: int | None) -> dict[str, Any]:
    team_id = visitor.caller.team_id
    found = keys.list_keys(session, team_id, after=None, limit=settings.page_limit_max)
    entries = audit_page(entries_before(session, team_id, before=before, limit=settings.page_limit_default))
    return {
        "keys": keys_page(found).data,
        "runs": _runs(entries.data),
        "key_names": {key.id: key.name for key in found.items},
        "older": entries.next if entries.has_more else None,
        "scopes": list(Scope),
        "now": datetime.now(UTC),
        "secrets": valid_secrets(session, team_id),
        "new_key": None,
        "new_secret": None,
    }


def _runs(entries: Sequence[AuditRead]) -> list[list[AuditRead]]:
    """Entries of one kind that follow each other, by the same key from the same address, as one; the newest first."""
    return [list(run) for _, run in groupby(entries, key=lambda entry: (entry.action, entry.key_id, entry.address))]


def _end_of(day: str) -> datetime | None:
    """The end of a day as a form gives it."""
    return datetime.combine(datetime.fromisoformat(day), time.max, UTC) if day else None
