"""The one task. A message carries nothing: which job is next, PostgreSQL knows."""

import os
import signal
import threading

from worker.celery_app import app, settings
from worker.context import claim_job, open_context
from worker.hardware import with_device
from worker.runner import run_job
from worker.sandbox.sandboxes import Sandboxes
from worker.warm import WarmSlot

WAKE_TASK = "worker.tasks.wake"
"""Name of the task, which is all that a sender needs to know."""
sandboxes = Sandboxes(settings)
"""Of this process. In the main process none is ever started."""


@app.task(name=WAKE_TASK)  # type: ignore[untyped-decorator] # Celery has no types
def wake() -> None:
    """Claim the next job and run it, or return at once where there is none.

    One job a message: the process ends with its task, and each job gets a fresh one. Only a process that keeps the pass of
    a job whose time slice is over goes on to the next, and so on until it has that pass back and at its end.
    """
    stop = threading.Event()
    # Asked to end, the process gives its job back at the next element instead of dying at once. The handler stays, since
    # the process ends by itself after this task.
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with sandboxes:
        sandboxes.prepare().make_ready()  # where none starts, no job is claimed
        with open_context(with_device(settings, sandboxes), sandboxes, os.getppid()) as context, WarmSlot() as warm:
            job = claim_job(context)
            while job is not None and run_job(context, job, stop, warm) and not (warm.is_empty or stop.is_set()):
                job = claim_job(context)
