"""How many requests came in a short time, counted in the broker, so that all processes of the API count together.

One round trip a request. Where the broker does not answer, requests pass: it is better to answer too much for a while than
nothing at all. That is logged once, and for some seconds the broker is not asked, so that no request waits for it in vain.
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
    """What one counter says after it was raised by one."""

    name: str
    """What is counted: requests of a ``key``, or refusals of an ``address``."""
    used: int
    limit: int
    window_seconds: int
    """How long it counts before it begins anew."""
    left_seconds: int
    """How much of that is left, rounded up."""

    @property
    def is_exceeded(self) -> bool:
        """Whether this one was too many."""
        return self.used > self.limit

    @property
    def headers(self) -> dict[str, str]:
        """As draft-ietf-httpapi-ratelimit-headers-10 writes them."""
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
        """Count one more; None if there is no limit, or if the broker does not answer."""
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
