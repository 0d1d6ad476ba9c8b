"""A real worker process on a real broker and database."""

import json
import signal
import time
from pathlib import Path

import pytest
from celery import Celery

from store.repositories.workers import living_workers
from store.session import Sessions, session_scope
from store.settings import Settings
from store.states import JobState
from tests.integration.real_worker import (
    HOURS,
    JOB_SECONDS,
    STOP_SECONDS,
    has_ended,
    log_of,
    settings,
    wait_until,
    worker,
)
from tests.tiny_models import tiny_rows, write_rows
from tests.worker.conftest import GUESSING, LONG_PASS, Post, Watch, opened, post, watch
from worker.sandbox.launch import RESTRICTIONS

__all__ = ["opened", "post", "settings", "watch"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_a_message_wakes_a_worker_that_runs_the_job(settings: Settings, post: Post, watch: Watch) -> None:
    with worker(settings, announce_seconds=HOURS):
        job_id = post()
        with Celery(broker=settings.broker_url.get_secret_value(), set_as_current=False) as sender:
            sender.send_task("worker.tasks.wake", queue=settings.celery_queue, ignore_result=True)
        wait_until(lambda: has_ended(watch, job_id), JOB_SECONDS, log_of(settings))
    job = watch.job(job_id)
    assert (job.state, job.error) == (JobState.SUCCEEDED, None)
    lines = [json.loads(line) for line in log_of(settings).read_text().splitlines() if line.startswith("{")]
    (claimed,) = [line for line in lines if line["event"] == "job_claimed"]
    assert (claimed["job_id"], claimed["fence"]) == (job_id, 1)
    # Not every machine grants every restriction, and each is named.
    (standing,) = [line["restrictions"] for line in lines if line["event"] == "sandbox_restrictions"]
    missing = [
        name for line in lines if line["event"] == "sandbox_restrictions_missing" for name in line["restrictions"]
    ]
    assert sorted([*standing, *missing]) == sorted(RESTRICTIONS)
    assert {line["level"] for line in lines if line["event"] != "sandbox_restrictions_missing"} == {"info"}
    assert settings.broker_url.get_secret_value() not in log_of(settings).read_text()


def drained(sessions: Sessions) -> bool:
    """Have all workers that are known drain; whether there is one."""
    with session_scope(sessions) as session:
        found = living_workers(session, HOURS)
        for one in found:
            one.is_draining = True
    return bool(found)


def test_a_worker_that_drains_leaves_messages_to_others(settings: Settings, sessions: Sessions, post: Post) -> None:
    with (
        worker(settings, announce_seconds=0.2),
        Celery(broker=settings.broker_url.get_secret_value(), set_as_current=False) as sender,
        sender.connection_for_read() as connection,
    ):
        wait_until(lambda: drained(sessions), JOB_SECONDS, log_of(settings))
        time.sleep(5.0)
        post()
        sender.send_task("worker.tasks.wake", queue=settings.celery_queue, ignore_result=True)
        time.sleep(3.0)
        assert connection.SimpleQueue(settings.celery_queue).qsize() == 1


def test_without_any_message_jobs_are_found_given_back_at_the_end_and_found_again(
    settings: Settings, post: Post, watch: Watch, tmp_path: Path
) -> None:
    data = write_rows(tmp_path / "rows.jsonl", tiny_rows(300))
    job_id = post(knobs=GUESSING | LONG_PASS, validation={"uri": f"file://{data}"})
    with worker(settings, announce_seconds=0.2) as process:
        wait_until(lambda: len(watch.trials(job_id)) >= 5, JOB_SECONDS, log_of(settings))
        asked = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_SECONDS)
    assert time.monotonic() - asked < STOP_SECONDS
    job, before = watch.job(job_id), watch.trials(job_id)
    assert (job.state, job.worker, job.attempt) == (JobState.QUEUED, None, 0)
    assert list((settings.var_dir / "work").iterdir()) == []

    with worker(settings, announce_seconds=0.2):
        wait_until(lambda: has_ended(watch, job_id), JOB_SECONDS, log_of(settings))
    assert watch.job(job_id).state is JobState.SUCCEEDED
    assert watch.trials(job_id)[: len(before)] == before
