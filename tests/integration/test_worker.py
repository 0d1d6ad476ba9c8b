"""A real worker process on a real broker and database."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from celery import Celery

from store.settings import Settings
from store.states import TERMINAL, JobState
from tests.tiny_models import tiny_rows, write_rows
from tests.worker.conftest import LONG_PASS, Open, Post, Watch, opened, post, watch

__all__ = ["opened", "post", "watch"]

START_SECONDS = 60.0
JOB_SECONDS = 100.0
"""Two imports of PyTorch, one in the worker and one in the check of the artifact, are most of it."""
STOP_SECONDS = 15.0
HOURS = 9999.0


pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def settings(database_url: str, broker_url: str, tmp_path: Path, opened: Open) -> Settings:
    return Settings(
        database_url=database_url,
        broker_url=broker_url,
        var_dir=tmp_path / "var",
        file_roots=(opened.root, tmp_path),
        celery_queue=f"test-{tmp_path.name}",
    )


@contextmanager
def worker(settings: Settings, announce_seconds: float) -> Iterator[subprocess.Popen[bytes]]:
    """A worker process that is ready, stopped at the end if it still runs."""
    environment = os.environ | {
        "DATABASE_URL": settings.database_url.get_secret_value(),
        "BROKER_URL": settings.broker_url.get_secret_value(),
        "AXFORMER_VAR_DIR": str(settings.var_dir),
        "AXFORMER_FILE_ROOTS": os.pathsep.join(map(str, settings.file_roots)),
        "AXFORMER_CELERY_QUEUE": settings.celery_queue,
        "AXFORMER_ANNOUNCE_SECONDS": str(announce_seconds),
        "AXFORMER_DEVICE": "cpu",
        "AXFORMER_TRIAL_BATCH_SECONDS": "0.05",
        "OMP_NUM_THREADS": "1",
    }
    log = log_of(settings)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    with log.open("ab") as output:
        command = [sys.executable, "-m", "celery", "-A", "worker.celery_app", "worker"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=output, env=environment)
    try:
        wait_until(lambda: " ready." in log.read_text(), START_SECONDS, log)
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == 0
    finally:
        process.kill()
        process.wait()


def log_of(settings: Settings) -> Path:
    return settings.var_dir / "worker.log"


def wait_until(condition: Callable[[], bool], seconds: float, log: Path) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def has_ended(watch: Watch, job_id: str) -> bool:
    return watch.job(job_id).state in TERMINAL


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
    assert {line["level"] for line in lines} == {"info"}
    assert settings.broker_url.get_secret_value() not in log_of(settings).read_text()


def test_without_any_message_jobs_are_found_given_back_at_the_end_and_found_again(
    settings: Settings, post: Post, watch: Watch, tmp_path: Path
) -> None:
    data = write_rows(tmp_path / "rows.jsonl", tiny_rows(300))
    job_id = post(knobs=LONG_PASS, validation={"uri": f"file://{data}"})
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
