"""Run one claimed job from its references to its artifacts, and record how it ends. Independent of Celery.

fetching -> validating -> running -> packaging -> succeeded. At every step the job may be cancelled, may turn out to belong to
another worker, may fail, or may have to wait because this worker must stop or other jobs go first. A confined process does
the work itself; this side handles the database, the network and the storage.
"""

import threading
from contextlib import ExitStack

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError

from store.errors import CancelRequestedError, LeaseLostError, PauseRequestedError, StorageUnavailableError, StoreError
from store.repositories import leases
from store.repositories.teams import limits_of
from store.session import session_scope
from store.states import JobState
from store.storage.storage import job_folder
from store.tables.jobs import Job
from worker.base.context import WorkerContext
from worker.job.failure import INTERNAL_ERROR, failure_of
from worker.job.lease import Lease, StopRequestedError
from worker.job.ledger import Ledger
from worker.job.time_slice import SliceOverError, TakenByForceError
from worker.job.warm import LeftToLargerError, WarmSlot
from worker.job.work import carry_out
from worker.sandbox.errors import ProcessDiedError
from worker.sandbox.workspace import remove_directories

_LOG = structlog.get_logger(__name__)
_NO_STORAGE = "the service's storage does not answer; the job goes on when it does"
"""What the owner reads; the operator's log says more."""
_TOLD_SECONDS = 1.0
"""How long the signal to stop may lag behind the end of the confined process."""


def run_job(context: WorkerContext, job: Job, stop: threading.Event, warm: WarmSlot | None = None) -> bool:
    """Run a job to its end or to the end of its time slice, or give it back when ``stop`` is set.

    Never raises because of the job itself. If the database cannot be reached, the job is left alone: its lease expires,
    and the worker that claims it next continues after the stored trials.

    Args:
        stop: set when this worker must end.
        warm: keeps a pass whose time slice is over; None to keep none.

    Returns:
        Whether this process can take another job.
    """
    ledger = Ledger(context.sessions, job.id, job.fence)
    with structlog.contextvars.bound_contextvars(job_id=job.id, fence=job.fence), ExitStack() as ending:
        _LOG.info("job_claimed", attempt=job.attempt)
        slot = warm if warm is not None else ending.enter_context(WarmSlot())
        try:
            try:
                with _lease_of(context, job, ledger, stop) as lease:
                    return _run_to_an_end(context, job, ledger, lease, slot)
            except ProcessDiedError as error:
                _release(context, ledger, error, stop)  # after the last heartbeat, which would renew the lease
        except LeaseLostError as error:
            _LOG.warning("lease_lost", reason=str(error))
        except (OperationalError, InterfaceError) as error:
            _LOG.error("database_unavailable", error=type(error).__name__)
    return False


def _lease_of(context: WorkerContext, job: Job, ledger: Ledger, stop: threading.Event) -> Lease:
    """The lease of a job, which ends where the operator's limit or its team's does, whichever is less."""
    settings = context.settings
    with session_scope(context.sessions) as session:
        most = min(settings.job_seconds, limits_of(session, job.team_id).seconds or settings.job_seconds)
    beats = {"lease_seconds": settings.lease_seconds, "heartbeat_seconds": settings.heartbeat_seconds}
    return Lease(ledger, **beats, stop=stop, most_seconds=most, held_seconds=job.worker_seconds)


def _run_to_an_end(context: WorkerContext, job: Job, ledger: Ledger, lease: Lease, warm: WarmSlot) -> bool:
    try:
        carry_out(context, job, ledger, lease, warm)
        _LOG.info("job_succeeded")
    except SliceOverError:
        _LOG.info("job_yielded")
    except TakenByForceError as error:
        _LOG.warning("job_taken", reason=str(error))
    except CancelRequestedError:
        ledger.write(leases.finish_cancelled)
        discard(context, job.id)
        _LOG.info("job_cancelled")
    except (StopRequestedError, PauseRequestedError, LeftToLargerError) as error:
        ledger.write(leases.release, str(error))
        _LOG.info("job_given_back", reason=str(error))
    except StorageUnavailableError as error:
        _LOG.error("storage_unavailable", reason=str(error))
        ledger.write(leases.release, _NO_STORAGE)
        return False
    except (LeaseLostError, OperationalError, InterfaceError, ProcessDiedError):
        raise
    except Exception as error:  # noqa: BLE001 - after any error the job must leave its working state
        return _end_badly(context, job, ledger, error)
    return True


def _release(context: WorkerContext, ledger: Ledger, error: ProcessDiedError, stop: threading.Event) -> None:
    """Release a job whose process has died for the next claim.

    The attempt counts, unless the process ended with its worker: a main process that is killed takes the confined process with
    it a moment before this process is told to stop.
    """
    _LOG.error("sandbox_died", reason=str(error))
    if stop.wait(_TOLD_SECONDS):
        ledger.write(leases.release, "its worker was ended")
    elif ledger.write(leases.abandon, "the process that worked on it has died").state is JobState.CANCELLED:
        discard(context, ledger.job_id)


def _end_badly(context: WorkerContext, job: Job, ledger: Ledger, error: Exception) -> bool:
    """Fail a job, or give it back if the cause may be a worker that is older or newer than the database."""
    failure = failure_of(error)
    if failure.code == INTERNAL_ERROR and not ledger.is_compatible():
        ledger.write(leases.release, "this worker does not fit the database's schema any more")
        _LOG.warning("job_given_back", reason="schema_differs")
        return False
    ledger.write(leases.finish_failed, failure.as_dict())
    discard(context, job.id)
    _LOG.info("job_failed", code=failure.code, message=failure.message)
    return True


def discard(context: WorkerContext, job_id: str) -> None:
    """Remove a job's stored files and its private directories.

    The job has already ended, so a failure here is logged for the operator.
    """
    remove_directories(context.settings.work_dir, job_id)
    try:
        context.storage.delete(job_folder(job_id))
    except (StoreError, OSError) as error:
        _LOG.error("files_left_behind", folder=job_folder(job_id), error=str(error))
