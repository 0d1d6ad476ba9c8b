"""Deliver pending webhook messages: a thread of the worker's main process looks for them, and others send.

Delivery is at least once: if a worker dies while sending, another one takes the message after its time is over.
"""

import random
import threading

import structlog
from sqlalchemy.exc import SQLAlchemyError

from store.errors import VaultKeyError
from store.repositories.deliveries import Attempt, claim_delivery, settle, valid_secrets
from store.session import Sessions, session_scope
from store.settings import Settings
from store.signing import webhook_secret
from store.tables.webhooks import Delivery
from worker.base.periodic import Periodic
from worker.fetching.policy import FetchPolicy
from worker.webhooks.sender import send

_LOG = structlog.get_logger(__name__)
_MARGIN_SECONDS = 60.0
"""How much longer a claim lasts than sending may take, for the name lookup and for writing the result."""
_JITTER = 0.25
"""Pauses are longer by up to this share, so that messages that failed together are not retried together."""


def deliver_next(sessions: Sessions, settings: Settings) -> bool:
    """Send the message that has waited longest, once. False if none is due."""
    delivery = _claim(sessions, settings)
    if delivery is None:
        return False
    _send(sessions, settings, delivery)
    return True


class Deliverer(Periodic):
    """A thread that looks for due messages until it is stopped, and sends each in its own thread."""

    def __init__(self, sessions: Sessions, settings: Settings) -> None:
        super().__init__("deliverer", settings.webhook.poll_seconds)
        self._sessions = sessions
        self._settings = settings
        self._free = threading.BoundedSemaphore(settings.webhook.senders)

    def once(self) -> None:
        """Begin to send what is due."""
        while not self.is_over and self._begin_one():
            pass

    def _begin_one(self) -> bool:
        """Start a thread for the next message. False if none is due or all threads are busy."""
        if not self._free.acquire(blocking=False):
            return False
        delivery = None
        try:
            delivery = _claim(self._sessions, self._settings)
        finally:
            if delivery is None:
                self._free.release()
        if delivery is None:
            return False
        threading.Thread(target=self._deliver, args=[delivery], name=f"send-{delivery.id}", daemon=True).start()
        return True

    def _deliver(self, delivery: Delivery) -> None:
        try:
            _send(self._sessions, self._settings, delivery)
        except SQLAlchemyError as error:
            _LOG.warning("delivery_not_noted", delivery=delivery.id, error=type(error).__name__)
        finally:
            self._free.release()


def _claim(sessions: Sessions, settings: Settings) -> Delivery | None:
    with session_scope(sessions) as session:
        seconds = settings.webhook.timeout_seconds + _MARGIN_SECONDS
        return claim_delivery(session, seconds=seconds, most=_most(settings))


def _send(sessions: Sessions, settings: Settings, delivery: Delivery) -> None:
    try:
        secrets = _secrets(sessions, settings, delivery.team_id)
    except (VaultKeyError, OSError) as error:
        attempt = Attempt(None, f"not sent: {error}")
    else:
        attempt = _NO_SECRET
        if secrets:
            attempt = send(delivery, secrets, _policy(settings), settings.webhook.timeout_seconds)
    pause = None if delivery.attempts >= _most(settings) else settings.webhook.retry_seconds[delivery.attempts - 1]
    retry_in = None if pause is None else pause * random.uniform(1, 1 + _JITTER)  # noqa: S311 - hides nothing
    with session_scope(sessions) as session:
        settle(session, delivery, attempt, retry_in=retry_in)
    level = _LOG.info if attempt.error is None else _LOG.warning
    level("webhook_sent", delivery=delivery.id, job_id=delivery.job_id, status=attempt.status, error=attempt.error)


_NO_SECRET = Attempt(None, "not sent: the team has no valid secret to sign it; POST /v1/webhook-secrets makes one")


def _secrets(sessions: Sessions, settings: Settings, team_id: str) -> tuple[str, ...]:
    with session_scope(sessions) as session:
        rows = valid_secrets(session, team_id)
    return tuple(webhook_secret(settings, row.salt, row.key_fingerprint, row.sealed) for row in rows)


def _most(settings: Settings) -> int:
    return 1 + len(settings.webhook.retry_seconds)


def _policy(settings: Settings) -> FetchPolicy:
    return FetchPolicy(
        private_hosts=frozenset(settings.webhook.private_hosts),
        ports=frozenset(settings.webhook.ports),
        plain_http=settings.webhook.plain_http,
    )
