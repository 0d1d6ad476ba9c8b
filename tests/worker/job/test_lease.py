import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest
from sqlalchemy import text

from store.errors import CancelRequestedError, LeaseLostError
from store.repositories import leases
from store.repositories.leases import release
from store.repositories.steering import delete_job, request_cancel
from store.session import Sessions, make_engine, make_sessions, session_scope
from store.settings import Settings
from store.tables.jobs import Job
from tests.waiting import wait_until
from tests.worker.conftest import Post, Watch
from worker.job.lease import Lease, StopRequestedError
from worker.job.ledger import Ledger

Claim = Callable[[], Job]
BEAT = 0.02


@pytest.fixture
def job(post: Post, claim: Claim) -> Job:
    post()
    return claim()


@pytest.fixture
def ledger(sessions: Sessions, job: Job) -> Ledger:
    return Ledger(sessions, job.id, job.fence)


def lease_of(ledger: Ledger, lease_seconds: float = 30.0, stop: threading.Event | None = None) -> Lease:
    return Lease(ledger, lease_seconds=lease_seconds, heartbeat_seconds=BEAT, stop=stop or threading.Event())


def wait_for(error: type[Exception], check_stop: Callable[[], None], seconds: float = 60.0) -> None:
    """Check again and again until it raises."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            check_stop()
        except error:
            return
        time.sleep(BEAT)
    raise AssertionError(f"no {error.__name__} in {seconds} s")


def end_of(watch: Watch, job: Job) -> datetime:
    end = watch.job(job.id).lease_until
    assert end is not None
    return end


def test_the_lease_is_renewed_while_the_work_goes_on(watch: Watch, job: Job, ledger: Ledger) -> None:
    before = end_of(watch, job)
    with lease_of(ledger, lease_seconds=60.0) as lease:
        wait_until(lambda: end_of(watch, job) > before)
        lease.check_stop()


def test_after_the_work_it_is_renewed_no_more(watch: Watch, job: Job, ledger: Ledger) -> None:
    with lease_of(ledger):
        pass
    before = end_of(watch, job)
    time.sleep(5 * BEAT)
    assert end_of(watch, job) == before


def test_a_cancelled_job_is_noticed(sessions: Sessions, job: Job, ledger: Ledger) -> None:
    with lease_of(ledger) as lease:
        with session_scope(sessions) as session:
            request_cancel(session, job.id)
        wait_for(CancelRequestedError, lease.check_stop)


def test_a_job_that_was_given_to_another_is_noticed(sessions: Sessions, job: Job, ledger: Ledger) -> None:
    with lease_of(ledger) as lease:
        with session_scope(sessions) as session:
            release(session, job.id, job.fence, "test")
        wait_for(LeaseLostError, lease.check_stop)


def test_a_job_that_was_deleted_is_noticed(sessions: Sessions, job: Job, ledger: Ledger) -> None:
    ledger.write(leases.finish_cancelled)
    with session_scope(sessions) as session:
        delete_job(session, job.id)
    with pytest.raises(LeaseLostError):
        ledger.write(leases.add_event, "job.fetched", {})


def test_a_database_that_stays_silent_costs_the_lease(settings: Settings, job: Job) -> None:
    nowhere = settings.model_copy(
        update={"database_url": type(settings.database_url)("postgresql+psycopg://127.0.0.1:1/x")}
    )
    engine = make_engine(nowhere)
    with lease_of(Ledger(make_sessions(engine), job.id, job.fence), lease_seconds=1.0) as lease:
        lease.check_stop()
        wait_for(LeaseLostError, lease.check_stop)
    engine.dispose()


def test_a_database_that_is_silent_for_a_moment_costs_nothing(
    settings: Settings, watch: Watch, job: Job, ledger: Ledger
) -> None:
    engine = make_engine(settings)
    with lease_of(replace(ledger, sessions=make_sessions(engine))) as lease:
        with watch.sessions() as session:
            others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            session.execute(text(f"{others} AND datname = current_database()"))
        before = end_of(watch, job)
        wait_until(lambda: end_of(watch, job) > before)
        lease.check_stop()
    engine.dispose()


def test_a_stopping_worker_breaks_off_but_still_owns_its_job(ledger: Ledger) -> None:
    stop = threading.Event()
    with lease_of(ledger, stop=stop) as lease:
        lease.check_stop()
        stop.set()
        with pytest.raises(StopRequestedError):
            lease.check_stop()
        lease.check()
