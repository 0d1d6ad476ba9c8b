"""How long the client waits and how often it tries again."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from axformer.client.errors import RefusedError, ServiceError, UnreachableError

Result = TypeVar("Result")

_BUSY = frozenset({429, 503})
"""The request was not served; it may be sent again whatever it does."""
_BROKEN_GATEWAY = frozenset({502, 504})
"""Something before the service has failed; whether the request was served is unknown."""


@dataclass(frozen=True)
class Patience:
    """Waits in seconds. The defaults outlast a restart of the service."""

    attempts: int = 7
    """With the waits below these take about half a minute, several times what a restart of the service takes."""
    first_wait: float = 0.5
    """Before the second attempt; each later one waits twice as long."""
    longest_wait: float = 60.0
    """The most that is waited once; a service that wants more (``Retry-After``) is not asked again."""
    connect: float = 10.0
    """For a connection; more means that nothing is there."""
    answer: float = 120.0
    """Between two pieces of an answer; storing an upload of gigabytes takes the service that long on a busy disk."""
    silence: float = 60.0
    """Of an event stream, which says something every 15 s while nothing happens."""
    outage: float = 900.0
    """How long something that follows a job goes on trying; a migration of the service takes minutes."""

    def persist(self, attempt: Callable[[], Result], *, again: bool) -> Result:
        """What ``attempt`` gives, tried again where the service was busy or did not answer.

        Args:
            attempt: one request.
            again: whether it may be sent again where it may have been served, because doing it twice is doing it once.
        """
        for count in range(1, self.attempts):
            try:
                return attempt()
            except ServiceError as error:
                wait = self._wait_after(error, count) if is_passing(error, again=again) else None
                if wait is None:
                    raise
                time.sleep(wait)
        return attempt()

    def backoff(self, count: int) -> float:
        """Seconds to wait after so many failures in a row, spread so that many clients do not come back at once."""
        return min(self.longest_wait, self.first_wait * 2.0 ** (count - 1)) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret

    def _wait_after(self, error: ServiceError, count: int) -> float | None:
        """Seconds to wait after a failure; None if the service wants to be left alone for too long."""
        told = error.retry_after if isinstance(error, RefusedError) else None
        if told is None:
            return self.backoff(count)
        return None if told > self.longest_wait else told + self.first_wait * random.random()  # noqa: S311 - no secret


def is_passing(error: ServiceError, *, again: bool = True) -> bool:
    """Whether the same request may succeed later, and may be sent again.

    Args:
        error: what became of it.
        again: whether doing it twice is doing it once.
    """
    if isinstance(error, UnreachableError):
        return again or not error.may_have_acted
    return error.status in _BUSY or (again and error.status in _BROKEN_GATEWAY)


class Outage:
    """How long the service has been away while something goes on over many requests."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._begun: float | None = None
        self._count = 0

    def is_over(self) -> None:
        """Take note that something has come."""
        self._begun, self._count = None, 0

    def wait(self, error: ServiceError) -> None:
        """Wait until the next try.

        Raises:
            ServiceError: ``error``, if trying again cannot help, or has gone on for too long.
        """
        if not is_passing(error):
            raise error
        now = time.monotonic()
        self._begun = self._begun or now
        if now - self._begun > self._patience.outage:
            raise error
        self._count += 1
        time.sleep(self._patience.backoff(self._count))
