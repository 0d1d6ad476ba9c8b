"""What a team's admins and the operator may do with keys: create, list, replace and revoke them. Changes are recorded."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy.orm import Session

from api.errors import FieldError, InvalidInputError, NoSuchObjectError, WrongStateError
from axformer.wire.scopes import Scope
from store.page import Page
from store.repositories import keys as repository
from store.repositories.audit import Actor, note
from store.repositories.keys import NewKey
from store.settings import Settings
from store.tables.teams import ApiKey


@dataclass(frozen=True)
class Replaced:
    """A key and its replacement."""

    old: ApiKey
    new: NewKey


def create(session: Session, actor: Actor, name: str, scope: Scope, expires_at: datetime | None = None) -> NewKey:
    """Create a key for the actor's team.

    Raises:
        InvalidInputError: it would have expired already, or never in the years that there are.
    """
    made = repository.create_key(session, actor.team_id, name, scope, _end(expires_at))
    note(session, actor, "key.create", made.id)
    return made


def _end(expires_at: datetime | None) -> datetime | None:
    """When a key is to end, in UTC: the database would store years that no program can read again."""
    if expires_at is None:
        return None
    if expires_at <= datetime.now(UTC):
        raise _refused_end(expires_at, "is past; give a later time, or leave it out")
    try:
        return expires_at.astimezone(UTC)
    except OverflowError:
        raise _refused_end(expires_at, "lies beyond the year 9999; leave it out for a key without an end") from None


def _refused_end(expires_at: datetime, why: str) -> InvalidInputError:
    detail = f"expires_at={expires_at.isoformat()} {why}"
    return InvalidInputError(detail, errors=[FieldError(detail, pointer="#/expires_at")])


def list_keys(session: Session, team_id: str, *, after: str | None, limit: int) -> Page[ApiKey]:
    """A page of the team's keys, the newest first.

    Raises:
        InvalidInputError: ``after`` is not a key of the team.
    """
    last = None if after is None else repository.find_key(session, after, team_id)
    if after is not None and last is None:
        detail = f"after='{after}' is not a key of your team; give the `next` of the page before"
        raise InvalidInputError(detail, errors=[FieldError(detail, parameter="after")])
    return repository.list_keys(session, team_id, after=last, limit=limit)


def find(session: Session, team_id: str, key_id: str) -> ApiKey:
    """The team's key of this id.

    Raises:
        NoSuchObjectError: the team has none.
    """
    key = repository.find_key(session, key_id, team_id)
    if key is None:
        raise NoSuchObjectError(
            f"your team has no key '{key_id}'; GET /v1/keys lists those there are", code="key_not_found"
        )
    return key


def replace(session: Session, settings: Settings, actor: Actor, key_id: str, grace_hours: float | None) -> Replaced:
    """Create a key like this one, which stays valid for a while, so that programs can switch without a gap.

    Raises:
        NoSuchObjectError: the team has no such key.
        WrongStateError: it was replaced before, or is not valid any more.
    """
    key = find(session, actor.team_id, key_id)
    is_valid = repository.lock_key(session, key)
    if key.replaced_by is not None:
        detail = f"key {key_id} was replaced by {key.replaced_by} already; rotate that one"
        raise WrongStateError(detail, code="key_replaced")
    if not is_valid:
        raise WrongStateError(f"key {key_id} was revoked or has expired; make a new one", code="key_not_valid")
    hours = settings.key_grace_hours if grace_hours is None else grace_hours
    made = repository.replace_key(session, key, timedelta(hours=hours))
    note(session, actor, "key.rotate", key_id)
    return Replaced(old=key, new=made)


def revoke(session: Session, actor: Actor, key_id: str, *, even_last: bool) -> None:
    """Revoke a key at once. A key that is already revoked stays so.

    Raises:
        NoSuchObjectError: the team has no such key.
        WrongStateError: no admin would be left, and ``even_last`` does not say that this is meant.
    """
    key = find(session, actor.team_id, key_id)
    is_valid = repository.lock_key(session, key)
    if is_valid and not even_last and repository.is_last_admin(session, key):
        detail = (
            f"key {key_id} is the last for admins that your team has, or the one that lasts longest; make another first, or "
            "say even_last=true: then only the operator of the service can make keys for your team"
        )
        raise WrongStateError(detail, code="last_admin_key")
    if repository.revoke_key(session, key_id):
        note(session, actor, "key.revoke", key_id)
