"""Advisory locks: each guards one thing, and nobody else waits for it."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import func, select, update

from store import locks
from store.repositories import claims, jobs, retention, steering
from store.session import Sessions, make_engine, make_sessions, session_scope
from store.setting_groups import DatabaseSettings
from store.settings import Settings
from store.tables.jobs import Job
from tests.store.makers import Makers

DAY = timedelta(days=1)


@pytest.fixture
def sessions(settings: Settings) -> Iterator[Sessions]:
    engine = make_engine(settings.model_copy(update={"database": DatabaseSettings(lock_timeout_ms=200)}))
    yield make_sessions(engine)
    engine.dispose()


def old_and_new_job(sessions: Sessions, make: Makers) -> tuple[str, str]:
    """A job that is past its time and one that waits."""
    with session_scope(sessions) as session:
        old, waiting = (jobs.create_job(session, make.job()).job.id for _ in range(2))
        steering.request_cancel(session, old)
        session.execute(update(Job).where(Job.id == old).values(finished_at=func.now() - 2 * DAY))
    return old, waiting


def test_every_lock_has_a_number_of_its_own() -> None:
    numbers = {name: number for name, number in vars(locks).items() if isinstance(number, int)}
    assert len(numbers) >= 3
    assert len(set(numbers.values())) == len(numbers), numbers


def test_a_job_is_claimed_while_the_janitor_removes_others(sessions: Sessions, make: Makers) -> None:
    old, waiting = old_and_new_job(sessions, make)
    with session_scope(sessions) as cleaning:
        assert retention.take_turn(cleaning)
        assert retention.remove_old_jobs(cleaning, DAY) == [old]
        with session_scope(sessions) as session:
            claimed = claims.claim_next(session, "worker", 60)
    assert claimed is not None
    assert claimed.id == waiting


def test_the_janitor_removes_jobs_while_others_are_claimed(sessions: Sessions, make: Makers) -> None:
    old, waiting = old_and_new_job(sessions, make)
    with session_scope(sessions) as claiming:
        claimed = claims.claim_next(claiming, "worker", 60)
        with session_scope(sessions) as session:
            assert retention.take_turn(session)
            assert retention.remove_old_jobs(session, DAY) == [old]
    assert claimed is not None
    assert claimed.id == waiting
    with session_scope(sessions) as session:
        assert session.scalars(select(Job.id)).all() == [waiting]


def test_two_janitors_take_turns(sessions: Sessions) -> None:
    with session_scope(sessions) as first, session_scope(sessions) as second:
        assert retention.take_turn(first)
        assert not retention.take_turn(second)
