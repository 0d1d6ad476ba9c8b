"""What becomes of jobs when a real worker is stopped, signalled, killed or stuck."""

import os
import signal
import socket
import time
from pathlib import Path

import psutil
import pytest
from sqlalchemy import select

from store.repositories.steering import request_cancel
from store.session import Sessions, session_scope
from store.settings import Settings
from store.states import JobState
from store.tables.jobs import Job
from tests.integration.real_worker import (
    JOB_SECONDS,
    STOP_SECONDS,
    has_ended,
    log_of,
    process_of,
    settings,
    wait_until,
    worker,
)
from tests.tiny_models import tiny_rows, write_rows
from tests.worker.conftest import GUESSING, LONG_PASS, Open, Post, Watch, opened, post, watch
from tests.worker.job.test_runner import library_run, without_seconds

__all__ = ["opened", "post", "settings", "watch"]

OBEY_SECONDS = 2.0
LONG_ROWS = 3000
"""For a job whose trials take several time slices of half a second on any machine."""
MANY_ROWS = 5000

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def long_job(post: Post, tmp_path: Path) -> str:
    data = write_rows(tmp_path / "rows.jsonl", tiny_rows(LONG_ROWS))
    return post(knobs=GUESSING | LONG_PASS, validation={"uri": f"file://{data}"})


@pytest.fixture
def endless_job(post: Post, tmp_path: Path) -> str:
    """A job that is sure to be in the middle of its pass when a test interrupts it."""
    data = write_rows(tmp_path / "many_rows.jsonl", tiny_rows(MANY_ROWS))
    return post(knobs=GUESSING | LONG_PASS, validation={"uri": f"file://{data}"})


def wait_for_trials(settings: Settings, watch: Watch, job_id: str, count: int = 5) -> None:
    wait_until(lambda: len(watch.trials(job_id)) >= count, JOB_SECONDS, log_of(settings))


def stop_between_transactions(sessions: Sessions, job_id: str, pid: int) -> None:
    """Stop a process at a moment at which it does not hold the row of its job, which a cancellation takes."""
    deadline = time.monotonic() + STOP_SECONDS
    while True:
        os.kill(pid, signal.SIGSTOP)
        free = select(Job.id).where(Job.id == job_id).with_for_update(skip_locked=True)
        with session_scope(sessions) as session:
            if session.scalars(free).one_or_none() is not None:
                return
        os.kill(pid, signal.SIGCONT)
        assert time.monotonic() < deadline, "the process holds its job's row all the time"
        time.sleep(0.01)


def test_a_process_that_is_stuck_or_killed_is_replaced_and_the_worker_goes_on(
    settings: Settings, post: Post, watch: Watch, sessions: Sessions, opened: Open, endless_job: str
) -> None:
    with worker(settings, announce_seconds=0.2, obey_seconds=OBEY_SECONDS):
        wait_for_trials(settings, watch, endless_job)
        stuck = process_of(watch, endless_job)
        stop_between_transactions(sessions, endless_job, stuck)
        with session_scope(sessions) as session:
            request_cancel(session, endless_job)
        wait_until(lambda: has_ended(watch, endless_job), JOB_SECONDS, log_of(settings))
        wait_until(lambda: not psutil.pid_exists(stuck), STOP_SECONDS, log_of(settings))
        assert watch.job(endless_job).state is JobState.CANCELLED
        assert list((settings.var_dir / "work").iterdir()) == []

        job_id = post(knobs=LONG_PASS)
        wait_for_trials(settings, watch, job_id)
        os.kill(process_of(watch, job_id), signal.SIGKILL)
        wait_until(lambda: has_ended(watch, job_id), JOB_SECONDS, log_of(settings))
    job = watch.job(job_id)
    assert (job.state, job.attempt) == (JobState.SUCCEEDED, 2)
    assert "job.worker_lost" in watch.events(job_id)
    assert without_seconds(watch.trials(job_id)) == without_seconds(library_run(opened, LONG_PASS).trace)


def test_a_stuck_process_does_not_keep_a_worker_from_ending(settings: Settings, watch: Watch, endless_job: str) -> None:
    with worker(settings, announce_seconds=0.2, obey_seconds=OBEY_SECONDS) as process:
        wait_for_trials(settings, watch, endless_job)
        stuck = process_of(watch, endless_job)
        os.kill(stuck, signal.SIGSTOP)
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == 0
    assert not psutil.pid_exists(stuck)
    job = watch.job(endless_job)
    assert (job.state, job.worker, job.attempt) == (JobState.QUEUED, None, 0)


@pytest.mark.parametrize(
    "signals", [[signal.SIGINT] * 3, [signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT]]
)
def test_however_often_a_worker_is_told_to_stop_it_gives_its_job_back(
    settings: Settings, watch: Watch, endless_job: str, signals: list[signal.Signals]
) -> None:
    with worker(settings, announce_seconds=0.2) as process:
        wait_for_trials(settings, watch, endless_job)
        for number in signals:
            process.send_signal(number)
            time.sleep(0.02)
        assert process.wait(STOP_SECONDS) == 0
    job = watch.job(endless_job)
    assert (job.state, job.worker, job.attempt) == (JobState.QUEUED, None, 0)
    assert [trial.seq for trial in watch.trials(endless_job)] == list(range(len(watch.trials(endless_job))))


def test_a_worker_that_waits_for_a_silent_source_ends_in_time(settings: Settings, post: Post, watch: Watch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        job_id = post(validation={"uri": f"http://127.0.0.1:{silent.getsockname()[1]}/rows.jsonl"})
        fetching = {"fetch_plain_http": True, "fetch_private_hosts": "127.0.0.1"}
        with worker(settings, announce_seconds=0.2, obey_seconds=OBEY_SECONDS, **fetching) as process:
            connection, _ = silent.accept()
            with connection:
                process.send_signal(signal.SIGTERM)
                assert process.wait(STOP_SECONDS) == 0
    job = watch.job(job_id)
    assert (job.state, job.attempt) == (JobState.QUEUED, 0)


def test_a_worker_that_is_packaging_ends_in_time(settings: Settings, post: Post, watch: Watch) -> None:
    job_id = post()
    with worker(settings, announce_seconds=0.2, obey_seconds=OBEY_SECONDS) as process:
        wait_until(lambda: watch.job(job_id).state is JobState.PACKAGING, JOB_SECONDS, log_of(settings))
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == 0
    job = watch.job(job_id)
    assert (job.state, job.attempt) in [(JobState.QUEUED, 0), (JobState.SUCCEEDED, 1)]


def test_a_job_whose_main_process_is_killed_is_given_back(settings: Settings, watch: Watch, endless_job: str) -> None:
    with worker(settings, announce_seconds=0.2, status=-signal.SIGKILL) as process:
        wait_for_trials(settings, watch, endless_job)
        process.kill()
        wait_until(lambda: watch.job(endless_job).state is JobState.QUEUED, JOB_SECONDS, log_of(settings))
    assert watch.job(endless_job).attempt == 0


def test_a_short_job_starts_within_a_slice_of_a_long_one(
    settings: Settings, post: Post, watch: Watch, long_job: str
) -> None:
    with worker(settings, announce_seconds=0.2, slice_seconds=0.5):
        wait_for_trials(settings, watch, long_job)
        short = post()
        wait_until(lambda: has_ended(watch, short), JOB_SECONDS, log_of(settings))
        assert not has_ended(watch, long_job)
        wait_until(lambda: has_ended(watch, long_job), JOB_SECONDS, log_of(settings))
    jobs = watch.job(short), watch.job(long_job)
    assert [(job.state, job.attempt) for job in jobs] == [(JobState.SUCCEEDED, 1)] * 2
