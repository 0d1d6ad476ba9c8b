"""A second of a small load, so that the benchmark is known to ask what the API answers."""

import asyncio

import pytest

from benchmarks.load import queue, traffic, workers
from benchmarks.load.__main__ import report
from store.repositories.queue import state_counts
from store.session import Sessions, session_scope
from store.settings import Settings
from store.states import JobState
from tests.api.conftest import app, live

__all__ = ["app", "live"]

TRIALS = 500


@pytest.fixture
def settings(database_url: str, broker_url: str, tmp_path) -> Settings:
    """They shed nothing, however slow the machine is."""
    urls = {"database_url": database_url, "broker_url": broker_url}
    return Settings(**urls, var_dir=tmp_path / "var", shed_seconds=3_600.0)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less of everything."""
    monkeypatch.setattr(queue, "JOBS_OF_A_TEAM", 3)
    monkeypatch.setattr(queue, "LONG_TRACE", TRIALS)
    monkeypatch.setattr(queue, "_BATCH", TRIALS)
    monkeypatch.setattr(traffic, "LONG_TRACE", TRIALS)
    monkeypatch.setattr(traffic, "POLLERS", 10)
    monkeypatch.setattr(traffic, "READERS", 3)


@pytest.mark.usefixtures("small")
def test_every_kind_of_request_is_asked_and_answered(settings: Settings, live: str, sessions: Sessions) -> None:
    loaded = queue.fill_queue(sessions)
    assert len(loaded.queued) == 3 * queue.TEAMS
    measured = asyncio.run(traffic.put_load(live, loaded, seconds=1.0, seed=0))
    assert set(measured.milliseconds) == {"GET job", *traffic.REST}
    assert measured.events >= 3
    sizes = queue.bytes_of(sessions)
    text = report(measured, [1.0, 2.0], sizes, 1.0)
    assert "| POST job |" in text
    assert traffic.SHED not in text
    assert "| trials |" in text


def test_what_is_shed_and_what_fails_is_counted_apart() -> None:
    async def ask(status: int) -> tuple[int, bytes]:
        if not status:
            raise ConnectionResetError
        return status, b""

    measured = traffic.Measured()
    for status in (200, 202, 503, 429, 0):
        asyncio.run(traffic._measure(measured, "queue", lambda status=status: ask(status), 0.0))
    assert {kind: len(values) for kind, values in measured.milliseconds.items()} == {
        "queue": 2,
        traffic.SHED: 1,
        traffic.FAILED: 2,
    }
    text = report(measured, [1.0], {}, 1.0)
    assert "| all that were served | 2 |" in text
    assert f"| {traffic.SHED} | 1 |" in text


@pytest.mark.usefixtures("small")
def test_played_workers_claim_and_write(settings: Settings, sessions: Sessions) -> None:
    queue.fill_queue(sessions)
    assert len(workers.play(sessions, seconds=0.5)) == 1
    with session_scope(sessions) as session:
        counts = state_counts(session)
    assert counts[JobState.RUNNING] == 2  # the long one and the claimed one
