"""Runs one claimed job from its references to its artifacts, and ends it one way or another. No Celery in here.

fetching -> validating -> running -> packaging -> succeeded; at every step it may turn out that the job is cancelled, was
given to another worker, cannot be done, or must wait because this worker is to stop.
"""

import threading
from collections.abc import Sequence
from pathlib import Path

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError

from axformer.config import make_config
from axformer.devices import resolve_device
from axformer.run import PruningRun
from store.errors import CancelRequestedError, LeaseLostError
from store.repositories.passes import is_search
from store.repositories.uploads import find_upload
from store.session import session_scope
from store.states import JobState
from store.storage import job_folder
from store.tables.jobs import Job
from store.tables.uploads import Upload
from worker.context import WorkerContext
from worker.failure import failure_of, in_owners_words
from worker.fetching.cache import ContentCache
from worker.fetching.fetcher import Fetcher
from worker.fetching.policy import policy_of
from worker.fetching.sources import open_source
from worker.fetching.transfer import Transfer
from worker.inputs import Inputs, fetch_inputs
from worker.lease import Lease, StopRequestedError
from worker.ledger import Ledger
from worker.packing import store_files
from worker.recorder import Recorder
from worker.workspace import private_directory

_LOG = structlog.get_logger(__name__)


def run_job(context: WorkerContext, job: Job, stop: threading.Event) -> None:
    """Run a job to its end, or give it back when ``stop`` is set.

    Never raises for what is wrong with the job. Where the database is out of reach the job is left alone: its lease
    runs out, and whoever claims it then goes on where the trace ends.
    """
    settings = context.settings
    ledger = Ledger(context.sessions, job.id, job.fence)
    lease = Lease(ledger, lease_seconds=settings.lease_seconds, heartbeat_seconds=settings.heartbeat_seconds, stop=stop)
    with structlog.contextvars.bound_contextvars(job_id=job.id, fence=job.fence):
        _LOG.info("job_claimed", attempt=job.attempt)
        try:
            with lease, private_directory(settings.work_dir, job.id) as work:
                _run_to_an_end(context, job, ledger, lease, work)
        except LeaseLostError as error:
            _LOG.warning("lease_lost", reason=str(error))
        except (OperationalError, InterfaceError) as error:
            _LOG.error("database_unavailable", error=type(error).__name__)


def _run_to_an_end(context: WorkerContext, job: Job, ledger: Ledger, lease: Lease, work: Path) -> None:
    try:
        _carry_out(context, job, ledger, lease, work)
        _LOG.info("job_succeeded")
    except CancelRequestedError:
        ledger.cancel()
        _discard(context, job)
        _LOG.info("job_cancelled")
    except StopRequestedError as error:
        ledger.give_back(str(error))
        _LOG.info("job_given_back")
    except (LeaseLostError, OperationalError, InterfaceError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the job must not stay in a working state
        failure = failure_of(error)
        ledger.fail(failure.as_dict())
        _discard(context, job)
        _LOG.info("job_failed", code=failure.code, message=failure.message)


def _discard(context: WorkerContext, job: Job) -> None:
    """Remove what was stored of a job that has come to nothing. It has ended, so a failure here is the operator's."""
    try:
        context.storage.delete(job_folder(job.id))
    except OSError as error:
        _LOG.error("files_left_behind", folder=job_folder(job.id), error=str(error))


def _carry_out(context: WorkerContext, job: Job, ledger: Ledger, lease: Lease, work: Path) -> None:
    passes = ledger.passes()
    inputs = fetch_inputs(job, passes, _fetcher(context, job, lease), work)
    ledger.note("job.fetched", {"sha256": dict(inputs.digests)})
    ledger.enter(JobState.VALIDATING)
    with in_owners_words(job, inputs):
        run = PruningRun.open(
            inputs.checkpoint,
            inputs.validation,
            test=inputs.test,
            config=make_config(job.preset, job.config),
            device=resolve_device(context.settings.device),
        )
        lease.heed()
        if run.notes:
            ledger.note("job.noted", {"notes": run.notes})
        ledger.enter(JobState.RUNNING)
        if is_search(job):
            _take_best(context, run, passes, ledger, lease)
        else:
            _search(context, run, inputs, ledger, lease)
        ledger.enter(JobState.PACKAGING)
        if job.parent_id is not None:
            ledger.succeed(None, [])  # its trace is all that the parent needs to publish the best
            return
        report = run.publish(work / "artifact")
    artifacts = store_files(work / "artifact", job.id, context.storage, lease.check)
    ledger.succeed(report, artifacts)


def _search(context: WorkerContext, run: PruningRun, inputs: Inputs, ledger: Ledger, lease: Lease) -> None:
    """Run the pass on from where its stored trace ends, and store what is new."""
    settings = context.settings
    stored = ledger.stored_trials(settings.trace_chunk)
    recorder = Recorder(
        ledger,
        run.dimensions,
        run.config,
        stored=len(stored),
        inputs=inputs.digests,
        batch=settings.trial_batch,
        batch_seconds=settings.trial_batch_seconds,
    )
    try:
        for trial in run.trials(stored):
            recorder.add(trial)
            lease.heed()
    except StopRequestedError:
        recorder.flush()
        raise
    recorder.flush()


def _take_best(context: WorkerContext, run: PruningRun, passes: Sequence[Job], ledger: Ledger, lease: Lease) -> None:
    """Replay the passes, which were jobs of their own, so that the run knows the best, and store its trace as the job's."""
    for _ in run.trials(ledger.trials_of(passes, context.settings.trace_chunk)):
        lease.heed()
    ledger.record(run.trace, None)


def _fetcher(context: WorkerContext, job: Job, lease: Lease) -> Fetcher:
    policy = policy_of(context.settings)

    def find(upload_id: str) -> Upload | None:
        with session_scope(context.sessions) as session:
            return find_upload(session, upload_id, job.team_id)

    return Fetcher(
        Transfer(ContentCache(context.settings.cache_dir), policy, lease.heed),
        lambda reference: open_source(reference, policy, find, context.storage),
    )
