"""Runs one claimed job from its references to its artifacts, and ends it one way or another. No Celery in here.

fetching -> validating -> running -> packaging -> succeeded; at every step it may turn out that the job is cancelled, was
given to another worker, cannot be done, or must wait because this worker is to stop or others go first.
"""

import threading
from contextlib import ExitStack
from dataclasses import replace

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError

from axformer.config import make_config
from axformer.devices import resolve_device
from axformer.finetune_settings import make_settings
from axformer.run import PruningRun
from store.errors import CancelRequestedError, LeaseLostError, PauseRequestedError
from store.repositories.jobs import hub_token_of
from store.repositories.passes import is_search
from store.repositories.uploads import find_upload
from store.session import session_scope
from store.states import JobState
from store.tables.jobs import Job
from store.tables.uploads import Upload
from store.vault import open_vault
from worker.context import WorkerContext
from worker.discard import discard
from worker.failure import INTERNAL_ERROR, UNCLEAN, failure_of, in_owners_words
from worker.fetching.cache import ContentCache
from worker.fetching.fetcher import Fetcher
from worker.fetching.policy import policy_of
from worker.fetching.sources import open_source
from worker.fetching.transfer import Transfer
from worker.inputs import fetch_inputs
from worker.lease import Lease, StopRequestedError
from worker.ledger import Ledger
from worker.memory import make_room
from worker.packing import store_files
from worker.recorder import Recorder
from worker.time_slice import SliceOverError, TimeSlice
from worker.warm import OpenPass, WarmSlot
from worker.workspace import private_directory

_LOG = structlog.get_logger(__name__)


def run_job(context: WorkerContext, job: Job, stop: threading.Event, warm: WarmSlot | None = None) -> bool:
    """Run a job to its end or to the end of its time slice, or give it back when ``stop`` is set.

    Never raises for what is wrong with the job. Where the database is out of reach the job is left alone: its lease
    runs out, and whoever claims it then goes on where the trace ends.

    Args:
        context: the tools of this process.
        job: just claimed.
        stop: set when this worker is to end.
        warm: where passes stay whose slice is over; null where none does.

    Returns:
        Whether this process is still good for another job.
    """
    settings = context.settings
    ledger = Ledger(context.sessions, job.id, job.fence)
    lease = Lease(ledger, lease_seconds=settings.lease_seconds, heartbeat_seconds=settings.heartbeat_seconds, stop=stop)
    with structlog.contextvars.bound_contextvars(job_id=job.id, fence=job.fence), ExitStack() as ending:
        _LOG.info("job_claimed", attempt=job.attempt)
        slot = warm if warm is not None else ending.enter_context(WarmSlot())
        try:
            with lease:
                return _run_to_an_end(context, job, ledger, lease, slot)
        except LeaseLostError as error:
            _LOG.warning("lease_lost", reason=str(error))
        except (OperationalError, InterfaceError) as error:
            _LOG.error("database_unavailable", error=type(error).__name__)
    return False


def _run_to_an_end(context: WorkerContext, job: Job, ledger: Ledger, lease: Lease, warm: WarmSlot) -> bool:
    try:
        _carry_out(context, job, ledger, lease, warm)
        _LOG.info("job_succeeded")
    except SliceOverError:
        _LOG.info("job_yielded")
    except CancelRequestedError:
        ledger.cancel()
        discard(context, job.id)
        _LOG.info("job_cancelled")
    except (StopRequestedError, PauseRequestedError) as error:
        ledger.give_back(str(error))
        _LOG.info("job_given_back", reason=str(error))
    except (LeaseLostError, OperationalError, InterfaceError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the job must not stay in a working state
        return _end_badly(context, job, ledger, error)
    return True


def _end_badly(context: WorkerContext, job: Job, ledger: Ledger, error: Exception) -> bool:
    """Fail a job, or give it back where the error may be that this worker is older or newer than the database."""
    failure = failure_of(error)
    if failure.code == INTERNAL_ERROR and not ledger.is_compatible():
        ledger.give_back("this worker does not fit the database's schema any more")
        _LOG.warning("job_given_back", reason="schema_differs")
        return False
    ledger.fail(failure.as_dict())
    discard(context, job.id)
    _LOG.info("job_failed", code=failure.code, message=failure.message)
    return failure.code not in UNCLEAN


def _carry_out(context: WorkerContext, job: Job, ledger: Ledger, lease: Lease, warm: WarmSlot) -> None:
    with ExitStack() as resources:
        opened = warm.take(job)
        is_warm = opened is not None
        if opened is None:
            opened = _open(context, job, ledger, lease, warm)
        resources.callback(opened.close)
        if is_warm:
            ledger.enter(JobState.VALIDATING)
            ledger.enter(JobState.RUNNING, "its model was still in memory")
        try:
            _finish(context, job, opened, ledger, lease)
        except SliceOverError as over:
            resources.pop_all()
            warm.keep(job.id, over.fence, opened)
            raise


def _open(context: WorkerContext, job: Job, ledger: Ledger, lease: Lease, warm: WarmSlot) -> OpenPass:
    """Fetch, check and load what a job works on."""
    settings = context.settings
    with ExitStack() as resources:
        work = resources.enter_context(private_directory(settings.work_dir, job.id))
        passes = ledger.passes()
        inputs = fetch_inputs(job, passes, _fetcher(context, job, lease), work)
        ledger.note("job.fetched", {"sha256": dict(inputs.digests)})
        ledger.enter(JobState.VALIDATING)
        with in_owners_words(job, inputs):
            config, device = make_config(job.preset, job.config), resolve_device(settings.device)
            make_room(inputs, config, device, settings, warm)
            run = PruningRun.open(
                inputs.checkpoint,
                inputs.validation,
                test=inputs.test,
                config=config,
                device=device,
                shards=settings.shards if config.evaluate_in == "float32" else 1,
                train=inputs.train,
                finetune=None if job.finetune is None else make_settings(job.finetune),
            )
        lease.heed()
        if run.notes:
            ledger.note("job.noted", {"notes": run.notes})
        ledger.enter(JobState.RUNNING)
        chunk = settings.trace_chunk
        stored = ledger.trials_of(passes, chunk) if is_search(job) else ledger.stored_trials(chunk)
        return OpenPass(work, inputs, run, stored, resources.pop_all())


def _finish(context: WorkerContext, job: Job, opened: OpenPass, ledger: Ledger, lease: Lease) -> None:
    """Run an open pass to its end and store what comes of it."""
    with in_owners_words(job, opened.inputs):
        if is_search(job):
            _take_best(opened, ledger, lease)
        else:
            _search(context, opened, ledger, lease)
        if opened.run.closing_note is not None:
            ledger.note("job.noted", {"notes": [opened.run.closing_note]})
        opened.run.finetune(lease.heed)
        ledger.enter(JobState.PACKAGING)
        if job.parent_id is not None:
            ledger.succeed(None, [])  # its trace is all that the parent needs to publish the best
            return
        report = opened.run.publish(opened.work / "artifact", job.forms)
    artifacts = store_files(opened.work / "artifact", job.id, context.storage, lease.check)
    ledger.succeed(report, artifacts)


def _search(context: WorkerContext, opened: OpenPass, ledger: Ledger, lease: Lease) -> None:
    """Run the pass on from where its stored trace ends, and store what is new."""
    settings = context.settings
    recorder = Recorder(
        ledger,
        opened.run.dimensions,
        opened.run.config,
        stored=opened.stored,
        inputs=opened.inputs.digests,
        estimate=opened.run.estimate,
        batch=settings.trial_batch,
        batch_seconds=settings.trial_batch_seconds,
    )
    for trial in opened.run.trace:
        recorder.add(trial)
    time_slice = None
    try:
        for trial in opened.trials:
            recorder.add(trial)
            lease.heed()
            if trial.seq < opened.stored:
                continue
            if time_slice is None:
                time_slice = TimeSlice(ledger, settings)
            elif time_slice.is_over:
                recorder.flush()
                time_slice.yield_to_others()
    except (StopRequestedError, PauseRequestedError):
        recorder.flush()
        raise
    recorder.end()


def _take_best(opened: OpenPass, ledger: Ledger, lease: Lease) -> None:
    """Replay the passes, which were jobs of their own, so that the run knows the best, and store its trace as the job's."""
    for _ in opened.trials:
        lease.heed()
    ledger.record(opened.run.trace, None)


def _fetcher(context: WorkerContext, job: Job, lease: Lease) -> Fetcher:
    policy = policy_of(context.settings)
    with session_scope(context.sessions) as session:
        locked = hub_token_of(session, job.id)
    if locked is not None:
        policy = replace(policy, hub_token=open_vault(context.settings).unlock(locked))

    def find(upload_id: str) -> Upload | None:
        with session_scope(context.sessions) as session:
            return find_upload(session, upload_id, job.team_id)

    return Fetcher(
        Transfer(ContentCache(context.settings.cache_dir), policy, lease.heed),
        lambda reference: open_source(reference, policy, find, context.storage),
    )
