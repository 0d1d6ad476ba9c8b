"""The one task. A message carries nothing: which job is next, PostgreSQL knows."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from worker.bench import claim_job, open_bench
from worker.celery_app import app, settings

WAKE_TASK = "worker.tasks.wake"
"""Name of the task, which is all that a sender needs to know."""


@app.task(name=WAKE_TASK)  # type: ignore[untyped-decorator] # Celery has no types
def wake() -> None:
    """Claim the next job and run it, or return at once where there is none.

    One job a message: the process ends with its task, and each job gets a fresh one.
    """
    with _stop_on_sigterm() as stop, open_bench(settings) as bench:
        job = claim_job(bench)
        if job is None:
            return
        from worker.runner import run_job  # imports PyTorch, which a process that finds no job does not need

        run_job(bench, job, stop)


@contextmanager
def _stop_on_sigterm() -> Iterator[threading.Event]:
    """An event that is set when the process is asked to end; the job is then given back at the next element."""
    stop = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, before)
