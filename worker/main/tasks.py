"""The only Celery task. Its message carries no data, since PostgreSQL knows which job is next."""

import os
import signal
import threading

from store.system.processes import once
from worker.base.context import claim_job, open_context, with_device
from worker.celery_app import app, settings
from worker.job.runner import run_job
from worker.job.warm import WarmSlot
from worker.sandbox.sandboxes import Sandboxes

WAKE_TASK = "worker.tasks.wake"
"""Name of the task, which is all that a sender needs."""
sandboxes = Sandboxes(settings)
"""The sandboxes of this process; the main process never starts one."""


@app.task(name=WAKE_TASK)  # type: ignore[untyped-decorator] # Celery has no types
def wake() -> None:
    """Claim the next job and run it, or return at once if there is none.

    One message means one job: the process ends with its task, and each job gets a fresh one. Only a process that keeps a
    suspended pass continues with further jobs, until it has resumed that pass and finished it.
    """
    stop = threading.Event()
    # Asked to end, the process gives its job back at the next element instead of dying at once. The handler stays, since
    # the process ends by itself after this task.
    signal.signal(signal.SIGTERM, once(stop.set))
    with sandboxes:
        sandboxes.prepare().make_ready()  # if none starts, no job is claimed
        with open_context(with_device(settings, sandboxes), sandboxes, os.getppid()) as context, WarmSlot() as warm:
            job = claim_job(context)
            while job is not None and run_job(context, job, stop, warm) and not (warm.is_empty or stop.is_set()):
                job = claim_job(context)
