"""A real worker makes itself known before it has a job, and stays alive while there is none."""

import os

import pytest

from axformer.wire.devices import Device
from store.repositories.workers import living_workers
from store.session import Sessions, session_scope
from store.settings import Settings
from store.tables.workers import Worker
from tests.integration.real_worker import START_SECONDS, log_of, settings, wait_until, worker
from tests.worker.conftest import opened
from worker.base.context import worker_name

__all__ = ["opened", "settings"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_an_idle_worker_is_known_and_stays_alive(settings: Settings, sessions: Sessions) -> None:
    def alive() -> list[Worker]:
        with session_scope(sessions) as session:
            return list(living_workers(session, settings.lease_seconds))

    with worker(settings, announce_seconds=0.1) as process:
        wait_until(lambda: bool(alive()), START_SECONDS, log_of(settings))
        (known,) = alive()
        assert (known.name, known.queue, known.device) == (worker_name(process.pid), settings.celery_queue, Device.CPU)
        assert known.process != known.name
        assert known.process != worker_name(os.getpid())
        wait_until(lambda: alive()[0].last_seen > known.last_seen, START_SECONDS, log_of(settings))
