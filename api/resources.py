"""The resources of an app for its whole lifetime."""

import sys
from dataclasses import dataclass
from functools import cached_property

from anyio import CapacityLimiter
from prometheus_client import CollectorRegistry, Counter
from sqlalchemy import Engine

from api.places import Places
from api.rate_limits import RateLimits
from api.services.queue_view import Views
from api.services.standings import Standings
from api.wakeup import Wakeup
from store.session import Sessions, make_engine, make_reading_sessions, make_sessions
from store.settings import Settings
from store.signing import ResultKey, result_key
from store.storage.storage import Storage, open_storage

_UPLOAD_SHARE = 4
"""The places for uploads are enough for so many teams that each take all they may."""


@dataclass
class Resources:
    """Settings, connections and counters of an app."""

    settings: Settings
    engine: Engine
    sessions: Sessions
    reading_sessions: Sessions
    storage: Storage
    wakeup: Wakeup
    registry: CollectorRegistry
    refused_keys: Counter
    """Counts invalid keys by reason."""
    rate_limits: RateLimits
    upload_limiter: CapacityLimiter
    upload_places: Places
    """The share of the uploads that one team may have."""
    looks: Places
    """For looks into files, which take long and may be of hostile ones."""
    queue_views: Views
    standings: Standings
    session_limiter: CapacityLimiter
    is_stopping: bool = False
    """True once the server must stop, so that endless streams end by themselves."""

    @cached_property
    def result_key(self) -> ResultKey:
        """The key that results are signed with, read when it is first asked for."""
        return result_key(self.settings)

    def stop(self) -> None:
        """End all endless streams."""
        self.is_stopping = True

    async def close(self) -> None:
        """Close all connections."""
        await self.standings.end()
        self.engine.dispose()
        self.rate_limits.close()


def open_resources(settings: Settings) -> Resources:
    """Create an app's resources without connecting yet."""
    engine = make_engine(settings)
    reading_sessions = make_reading_sessions(engine)
    registry = CollectorRegistry()
    return Resources(
        settings=settings,
        engine=engine,
        sessions=make_sessions(engine),
        reading_sessions=reading_sessions,
        storage=open_storage(settings),
        wakeup=Wakeup(settings),
        registry=registry,
        refused_keys=Counter("axformer_refused_keys", "Keys that were not valid.", ("reason",), registry=registry),
        rate_limits=RateLimits(settings),
        upload_limiter=CapacityLimiter(settings.uploads_at_once),
        upload_places=Places("uploads", sys.maxsize, max(1, settings.uploads_at_once // _UPLOAD_SHARE)),
        looks=Places("looks into files", settings.looks_at_once, 1, settings.look_wait_seconds),
        queue_views=Views(reading_sessions, settings),
        standings=Standings(reading_sessions, settings.event_poll_seconds),
        session_limiter=CapacityLimiter(settings.sessions_at_once),
    )
