"""What the worker's processes do besides Celery's own work.

The main process announces jobs, supervises its children, delivers webhooks, cleans up, forwards the signal to stop, and
keeps the warm parent. That process has finished the imports, which take seconds, and forks the confined processes. Each child
requests one before it has a job. Only the warm parent imports PyTorch.
"""

import os
import signal
import threading
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import structlog
from celery import signals
from celery.worker import state
from sqlalchemy.exc import SQLAlchemyError

from store.errors import StorageFullError, StorageRefusedError, StorageUnavailableError
from store.logs import configure_logs
from store.storage.storage import open_storage
from store.system.processes import once
from worker.base.context import make_known, open_context, with_device
from worker.base.periodic import Periodic
from worker.celery_app import app, settings
from worker.handover.courier import Courier
from worker.janitor import Janitor
from worker.job.runner import discard
from worker.main.announcer import Announcer
from worker.main.supervisor import Supervisor, end_if_hung, job_processes, kill_tree, stop_with_parent
from worker.main.tasks import WAKE_TASK, sandboxes
from worker.main.watches import AuditChain, DiskWatch, SuccessWatch
from worker.sandbox import launch
from worker.sandbox.errors import GpuUnusableError, RestrictionsMissingError
from worker.sandbox.probe import refused_restrictions
from worker.sandbox.warm_parent import Keeper
from worker.webhooks.deliverer import Deliverer

_MESSAGE_SECONDS = 60.0
"""Lifetime of a message: by then it is sent again if necessary, and a busy broker drops old ones."""

_LOG = structlog.get_logger(__name__)
_SUPERVISION_SECONDS = 1.0
"""Interval of the supervisor's checks, each of which is one small query."""

_SHUTDOWN_SECONDS = 20.0
"""How long Celery may take to end once the processes have had to."""

_contexts = ExitStack()
_stopping = threading.Event()
_keeper = Keeper()
_running: list[tuple[Announcer, Supervisor]] = []
_refused: dict[str, str] = {}
"""Restrictions that this machine does not grant, and why."""
_beside: list[Periodic] = []
"""Threads that do not concern the queue."""


def _set_up_logs(**_: Any) -> None:
    configure_logs(always_json=True)


def _check_storage(**_: Any) -> None:
    """Exit if the storage refuses this worker; one that does not answer may do so later."""
    try:
        open_storage(settings).check()
    except StorageRefusedError as error:
        raise SystemExit(f"axformer worker: {error}") from None
    except (StorageUnavailableError, StorageFullError) as error:
        _LOG.warning("storage_unavailable", reason=str(error))


def _probe_restrictions(**_: Any) -> None:
    """Probe the restrictions of this machine, and exit if the operator requires others."""
    try:
        _refused.update(refused_restrictions(settings))
    except RestrictionsMissingError as error:
        raise SystemExit(str(error)) from None
    _keeper.start()


def _prepare_child(**_: Any) -> None:
    stop_with_parent()
    sandboxes.prepare()
    try:
        with open_context(with_device(settings, sandboxes), sandboxes, os.getppid()) as context:
            make_known(context)
    except SQLAlchemyError as error:  # it registers again when it looks for a job
        _LOG.warning("not_made_known", error=type(error).__name__)
    except GpuUnusableError as error:  # no job is taken; each attempt says so again
        _LOG.error("gpu_unusable", reason=str(error))


def _start(sender: Any, **_: Any) -> None:
    context = _contexts.enter_context(open_context(settings, sandboxes))
    # Reserved requests are those that this worker has accepted and not finished, whether or not its child is ready.
    announcer = Announcer(
        context.sessions,
        _send,
        lambda: bool(state.reserved_requests),
        settings.announce_seconds,
        context.name,
        on_drain=once(partial(sender.call_soon, sender.cancel_task_queue, settings.celery_queue)),
    )
    supervisor = Supervisor(
        context.sessions,
        job_processes,
        kill_tree,
        partial(discard, context),
        obey_seconds=settings.obey_seconds,
        every_seconds=_SUPERVISION_SECONDS,
    )
    _running.append((announcer, supervisor))
    _LOG.info("sandbox_restrictions", restrictions=[name for name in launch.RESTRICTIONS if name not in _refused])
    if _refused:
        _LOG.warning("sandbox_restrictions_missing", restrictions=_refused, remedy="see docs/security.md")
    announcer.start()
    supervisor.start()
    hung_after = settings.obey_seconds + _SHUTDOWN_SECONDS
    threading.Thread(target=end_if_hung, args=(_stopping, hung_after), name="end", daemon=True).start()
    _beside.extend(kind(context.sessions, settings) for kind in (Deliverer, Courier, Janitor, DiskWatch, AuditChain))
    _beside.append(SuccessWatch(context.sessions, context.name, [announcer, supervisor, *_beside]))
    for thread in _beside:
        thread.start()
    # Celery would kill running jobs at the second Ctrl-C. Here every signal means the same, however often it comes.
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.getsignal(signal.SIGTERM))


@once
def _stop_threads() -> None:
    _stopping.set()
    for announcer, supervisor in _running:
        announcer.stop()
        supervisor.end_children()
    for thread in _beside:
        thread.stop()


def _stop(**_: Any) -> None:
    """Have the running job's process give the job back; Celery would wait until it is finished."""
    _stop_threads()
    for pid in job_processes():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def _end(**_: Any) -> None:
    for announcer, supervisor in _running:
        announcer.join()
        supervisor.stop()
    _keeper.close()
    _contexts.close()


def _send() -> None:
    app.send_task(WAKE_TASK, expires=_MESSAGE_SECONDS, retry=False)


signals.worker_init.connect(_check_storage)
signals.worker_init.connect(_probe_restrictions)
signals.setup_logging.connect(_set_up_logs)
signals.worker_process_init.connect(_prepare_child)
signals.worker_ready.connect(_start)
signals.worker_shutting_down.connect(_stop)
signals.worker_shutdown.connect(_end)
