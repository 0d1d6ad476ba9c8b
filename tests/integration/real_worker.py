"""A real worker: Celery's main process and the process of its job, on a real broker and database."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from store.settings import Settings
from store.states import TERMINAL
from tests import forked
from tests.worker.conftest import Open, Watch

START_SECONDS = 180.0
JOB_SECONDS = 400.0
"""Imports of PyTorch, in the worker and in the processes that load each form afresh, are most of it."""
STOP_SECONDS = 60.0
HOURS = 9999.0


def worker_settings(database_url: str, broker_url: str, home: Path, opened: Open) -> Settings:
    """Settings of a worker with a queue of its own."""
    return Settings(
        database_url=database_url,
        broker_url=broker_url,
        var_dir=home / "var",
        file_roots=(opened.root, home),
        celery_queue=f"test-{home.name}",
    )


@pytest.fixture
def settings(database_url: str, broker_url: str, tmp_path: Path, opened: Open) -> Settings:
    return worker_settings(database_url, broker_url, tmp_path, opened)


@contextmanager
def worker(
    settings: Settings, announce_seconds: float, *, status: int = 0, **others: object
) -> Iterator[subprocess.Popen[bytes]]:
    """A worker that is ready, stopped at the end if it still runs.

    Args:
        settings: where its database and broker are.
        announce_seconds: the setting.
        status: that it ends with.
        others: more settings.
    """
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
    environment |= {f"AXFORMER_{name.upper()}": str(value) for name, value in others.items()}
    log = log_of(settings)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    with log.open("ab") as output, forked.forking(nested=True):
        command = [sys.executable, "-m", "celery", "-A", "worker.celery_app", "worker"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=output, env=environment)
    try:
        wait_until(lambda: " ready." in log.read_text(), START_SECONDS, log)
        yield process
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: process.poll() is not None, STOP_SECONDS, log)
        assert process.returncode == status, log.read_text()
    finally:
        process.kill()
        process.wait()


def log_of(settings: Settings) -> Path:
    """What the worker has said."""
    return settings.var_dir / "worker.log"


def wait_until(condition: Callable[[], bool], seconds: float, log: Path) -> None:
    """Wait, and show the log where it takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def has_ended(watch: Watch, job_id: str) -> bool:
    """Whether the job is at its end."""
    return watch.job(job_id).state in TERMINAL


def process_of(watch: Watch, job_id: str) -> int:
    """The id of the process that has the job."""
    name = watch.job(job_id).worker
    assert name is not None
    return int(name.rpartition(":")[2])
