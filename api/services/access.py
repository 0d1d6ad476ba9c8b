"""Authentication: recognise a key, or refuse it with a reason. Refusals are counted, and recorded for the team that the key
seems to belong to."""

from dataclasses import replace

import structlog

from api.errors import ApiError, LimitReachedError, NotPermittedError, NoValidKeyError
from api.rate_limits import Rate
from api.resources import Resources
from axformer.wire.scopes import Scope
from store.repositories.audit import count_refusal
from store.repositories.keys import Caller, Reason, Refusal, recognise
from store.session import session_scope

_LOG = structlog.get_logger(__name__)
_CHALLENGE = 'Bearer realm="axformer"'
_NO_KEY = "there is no key; send 'Authorization: Bearer axk_...'"
_WHY = {
    Reason.UNKNOWN: "the key is unknown; ask an admin of your team for one",
    Reason.WRONG: "the key is unknown; ask an admin of your team for one",
    Reason.REVOKED: "the key was revoked; ask an admin of your team for another",
    Reason.EXPIRED: "the key has expired; ask an admin of your team for another",
}


def sign_in(resources: Resources, key: str | None, address: str | None) -> Caller:
    """The caller that a key belongs to, read in a separate session, so that no stream or upload keeps one open.

    Raises:
        NoValidKeyError: there is no key, or it is not valid.
        LimitReachedError: this address has sent too many invalid keys.
    """
    if key is None:
        raise _refused(resources, _NO_KEY, _CHALLENGE, address)
    with session_scope(resources.reading_sessions) as session:
        found = recognise(session, key)
        if isinstance(found, Refusal) and found.team_id is not None and found.key_id is not None:
            count_refusal(session, found.team_id, found.key_id, address)
    if isinstance(found, Refusal):
        resources.refused_keys.labels(found.reason.value).inc()
        _LOG.info("key_refused", reason=found.reason.value, key_id=found.key_id, address=address)
        raise _refused(resources, _WHY[found.reason], f'{_CHALLENGE}, error="invalid_token"', address)
    return replace(found, address=address)


def count_request(resources: Resources, caller: Caller) -> Rate | None:
    """Count a request of a valid key; None if it is not counted.

    Raises:
        LimitReachedError: the key has made too many in a short time.
    """
    rate = resources.rate_limits.count("key", caller.key_id, resources.settings.rate.requests)
    if rate is not None and rate.is_exceeded:
        raise _too_many(rate, f"key {caller.key_id} has made more than {rate.limit} requests")
    return rate


def check_scope(caller: Caller, demanded: Scope) -> None:
    """Check that a key has the scope that a route demands.

    Raises:
        NotPermittedError: its scope does not include the one that is demanded.
    """
    if caller.scope.includes(demanded):
        return
    detail = (
        f"this needs a key with the scope '{demanded}', and key {caller.key_id} has '{caller.scope}'; "
        "ask an admin of your team for another"
    )
    challenge = f'{_CHALLENGE}, error="insufficient_scope", scope="{demanded}"'
    raise NotPermittedError(detail, code="insufficient_scope", headers={"WWW-Authenticate": challenge})


def _refused(resources: Resources, detail: str, challenge: str, address: str | None) -> ApiError:
    rate = resources.rate_limits.count("address", address or "unknown", resources.settings.rate.refusals)
    if rate is not None and rate.is_exceeded:
        return _too_many(rate, f"more than {rate.limit} requests without a valid key came from {address}")
    return NoValidKeyError(detail, headers={"WWW-Authenticate": challenge})


def _too_many(rate: Rate, what: str) -> LimitReachedError:
    detail = f"{what} within {rate.window_seconds} s; wait {rate.left_seconds} s, and ask less often"
    headers = rate.headers | {"Retry-After": str(rate.left_seconds)}
    return LimitReachedError(
        detail, code="rate_limited", headers=headers, figures={"used": rate.used, "limit": rate.limit}
    )
