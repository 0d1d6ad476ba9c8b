"""What the worker's processes do beside Celery's own work.

The main process announces jobs and passes on the word to stop. Each child imports PyTorch before it has a job, which
takes seconds that the job then need not wait for; the main process never does.
"""

import importlib
import os
import signal
from contextlib import suppress
from typing import Any

import billiard
from celery import signals
from celery.worker import state

from store.session import make_engine, make_sessions
from worker.celery_app import app, settings
from worker.logs import configure_logs
from worker.outbox import Announcer
from worker.tasks import WAKE_TASK

_MESSAGE_SECONDS = 60.0
"""Life of a message; by then it was sent again if need be, and a busy broker is not left with old ones."""

_announcers: list[Announcer] = []


def _set_up_logs(**_: Any) -> None:
    configure_logs()


def _prepare_child(**_: Any) -> None:
    importlib.import_module("worker.runner")


def _start_announcer(**_: Any) -> None:
    # Reserved requests are those that this worker has taken and not finished, whether its child is ready or not.
    sessions = make_sessions(make_engine(settings))
    announcer = Announcer(sessions, _send, lambda: bool(state.reserved_requests), settings.announce_seconds)
    _announcers.append(announcer)
    announcer.start()


def _stop(**_: Any) -> None:
    """Celery now waits for the running job; tell its process to give the job back instead of finishing it."""
    for announcer in _announcers:
        announcer.stop()
    for child in billiard.active_children():
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGTERM)


def _end(**_: Any) -> None:
    for announcer in _announcers:
        announcer.join()


def _send() -> None:
    app.send_task(WAKE_TASK, expires=_MESSAGE_SECONDS, retry=False)


signals.setup_logging.connect(_set_up_logs)
signals.worker_process_init.connect(_prepare_child)
signals.worker_ready.connect(_start_announcer)
signals.worker_shutting_down.connect(_stop)
signals.worker_shutdown.connect(_end)
