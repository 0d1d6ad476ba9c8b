"""Rate limits, counted in the broker so that all processes of the API count together.

This costs one round trip per request. If the broker does not answer, requests pass: for a while, too many answers are better
than none. That is logged once, and the broker is left alone for some seconds, so that requests do not wait for it in vain.
"""

import time
from dataclasses import dataclass
from typing import Any

import structlog
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from store.settings import Settings

_COUNT = """
local used = redis.call('INCR', KEYS[1])
if used == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return {used, redis.call('PTTL', KEYS[1])}
"""
_MILLISECONDS = 1000
_RETRIES = 1  # at once, for a connection that ended with a restart of the broker
_LOG = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Rate:
    """The state of a counter after it was incremented."""

    name: str
    """What is counted: requests of a ``key``, or refusals of an ``address``."""
    used: int
    limit: int
    window_seconds: int
    """Length of the window."""
    left_seconds: int
    """Remaining seconds of the window, rounded up."""

    @property
    def is_exceeded(self) -> bool:
        """Whether the limit is exceeded."""
        return self.used > self.limit

    @property
    def headers(self) -> dict[str, str]:
        """Headers of draft-ietf-httpapi-ratelimit-headers-10."""
        left = max(0, self.limit - self.used)
        return {
            "RateLimit-Policy": f'"{self.name}";q={self.limit};w={self.window_seconds}',
            "RateLimit": f'"{self.name}";r={left};t={self.left_seconds}',
        }


class RateLimits:
    """Counters with a window each, which begins with the first request in it."""

    def __init__(self, settings: Settings) -> None:
        rate = settings.rate
        self._window, self._pause = rate.window_seconds, rate.pause_seconds
        self._prefix = f"{settings.celery_queue}:rate"
        self._paused_until = 0.0
        self._client: Redis = Redis.from_url(
            settings.broker_url.get_secret_value(),
            socket_connect_timeout=rate.timeout_seconds,
            socket_timeout=rate.timeout_seconds,
            retry=Retry(NoBackoff(), _RETRIES),
        )
        self._count = self._client.register_script(_COUNT)

    def count(self, name: str, whose: str, limit: int) -> Rate | None:
        """Increment a counter; None if there is no limit, or if the broker does not answer."""
        if not limit or time.monotonic() < self._paused_until:
            return None
        try:
            answer: Any = self._count(keys=[f"{self._prefix}:{name}:{whose}"], args=[self._window * _MILLISECONDS])
        except (RedisError, OSError) as error:
            self._paused_until = time.monotonic() + self._pause
            _LOG.warning("rate_limits_off", error=type(error).__name__, seconds=self._pause)
            return None
        used, milliseconds = answer
        return Rate(name, used, limit, self._window, -(-milliseconds // _MILLISECONDS))

    def close(self) -> None:
        """Close all connections."""
        self._client.close()
