"""Timeouts and retries of the client."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from axformer.client.errors import RefusedError, ServiceError, UnreachableError

Result = TypeVar("Result")

_BUSY = frozenset({429, 503})
"""The request was not served, so any request may be retried."""
_BROKEN_GATEWAY = frozenset({502, 504})
"""A proxy in front of the service failed; whether the request was served is unknown."""


@dataclass(frozen=True)
class Patience:
    """Waiting times in seconds. The defaults outlast a restart of the service."""

    attempts: int = 7
    """Most attempts; with the waits below they take about half a minute, several times a restart of the service."""
    first_wait: float = 0.5
    """Wait before the second attempt; it doubles with each later one."""
    longest_wait: float = 60.0
    """Longest single wait; if the service asks for more (``Retry-After``), there is no retry."""
    connect: float = 10.0
    """Timeout of a connection attempt."""
    answer: float = 120.0
    """Timeout between two pieces of an answer; storing an upload of gigabytes can take this long on a busy disk."""
    silence: float = 60.0
    """Longest silence of an event stream, which sends a comment every 15 s."""
    outage: float = 900.0
    """How long to retry while following a job; a migration of the service takes minutes."""

    def persist(self, attempt: Callable[[], Result], *, again: bool) -> Result:
        """Call ``attempt``, and retry if the service is busy or does not answer.

        Args:
            attempt: one request.
            again: whether to retry even if the service may have acted, because the request is idempotent.
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
        """Seconds to wait after some failures in a row, randomized so that clients do not return all at once."""
        return min(self.longest_wait, self.first_wait * 2.0 ** (count - 1)) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret

    def _wait_after(self, error: ServiceError, count: int) -> float | None:
        """Seconds to wait after a failure; None if the service asks for a longer wait than allowed."""
        told = error.retry_after if isinstance(error, RefusedError) else None
        if told is None:
            return self.backoff(count)
        return None if told > self.longest_wait else told + self.first_wait * random.random()  # noqa: S311 - no secret


def is_passing(error: ServiceError, *, again: bool = True) -> bool:
    """Whether the same request may succeed later and may be retried.

    Args:
        error: the error of the request.
        again: whether the request is idempotent.
    """
    if isinstance(error, UnreachableError):
        return again or not error.may_have_acted
    return error.status in _BUSY or (again and error.status in _BROKEN_GATEWAY)


class Outage:
    """Tracks an outage of the service over many requests."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._begun: float | None = None
        self._count = 0

    def is_over(self) -> None:
        """Record that the service has answered."""
        self._begun, self._count = None, 0

    def wait(self, error: ServiceError) -> None:
        """Wait before the next attempt.

        Raises:
            ServiceError: ``error``, if a retry cannot help or the outage lasts too long.
        """
        if not is_passing(error):
            raise error
        now = time.monotonic()
        self._begun = self._begun or now
        if now - self._begun > self._patience.outage:
            raise error
        self._count += 1
        time.sleep(self._patience.backoff(self._count))
