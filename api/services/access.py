"""Who asks: a key is recognised, or refused with the reason. Refusals are counted, and noted for the team whose key it seems
to be."""

from dataclasses import replace

from api.errors import ForbiddenError, UnauthorizedError
from api.resources import Resources
from store.repositories.audit import count_refusal
from store.repositories.keys import Caller, Reason, Refusal, recognise
from store.scopes import Scope
from store.session import session_scope

_CHALLENGE = 'Bearer realm="axformer"'
_NO_KEY = "there is no key; send 'Authorization: Bearer axk_...'"
_WHY = {
    Reason.UNKNOWN: "the key is unknown; ask an admin of your team for one",
    Reason.WRONG: "the key is unknown; ask an admin of your team for one",
    Reason.REVOKED: "the key was revoked; ask an admin of your team for another",
    Reason.EXPIRED: "the key has expired; ask an admin of your team for another",
}


def sign_in(resources: Resources, key: str | None, address: str | None) -> Caller:
    """Whom a key stands for, by a session of its own, so that no stream or upload keeps one open.

    Raises:
        UnauthorizedError: there is no key, or it is not valid.
    """
    if key is None:
        raise UnauthorizedError(_NO_KEY, headers={"WWW-Authenticate": _CHALLENGE})
    with session_scope(resources.reading_sessions) as session:
        found = recognise(session, key)
        if isinstance(found, Refusal) and found.team_id is not None and found.key_id is not None:
            count_refusal(session, found.team_id, found.key_id, address)
    if isinstance(found, Refusal):
        resources.refused_keys.labels(found.reason.value).inc()
        raise UnauthorizedError(
            _WHY[found.reason], headers={"WWW-Authenticate": f'{_CHALLENGE}, error="invalid_token"'}
        )
    return replace(found, address=address)


def check_scope(caller: Caller, demanded: Scope) -> None:
    """Make sure that a key may do what a route does.

    Raises:
        ForbiddenError: its scope does not include the one that is demanded.
    """
    if caller.scope.includes(demanded):
        return
    detail = (
        f"this needs a key with the scope '{demanded}', and key {caller.key_id} has '{caller.scope}'; "
        "ask an admin of your team for another"
    )
    challenge = f'{_CHALLENGE}, error="insufficient_scope", scope="{demanded}"'
    raise ForbiddenError(detail, code="insufficient_scope", headers={"WWW-Authenticate": challenge})
