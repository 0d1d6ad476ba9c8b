"""Carries out one job with its confined process: what is told to it when, and what is stored of what it says."""

from contextlib import ExitStack
from dataclasses import replace

from pydantic import ValidationError

from axformer.config import make_config
from axformer.data.source import DataSource
from axformer.methods.axformer.orders import passes_in
from axformer.methods.axformer.progress import longest_trace
from axformer.methods.axformer.targets import Estimate as PlanEstimate
from axformer.repair.settings import make_settings
from axformer.wire.report import Report
from store.errors import PauseRequestedError
from store.repositories.jobs import hub_token_of
from store.repositories.passes import is_search
from store.repositories.uploads import find_upload
from store.session import session_scope
from store.states import JobState
from store.tables.artifacts import Artifact
from store.tables.jobs import Job
from store.tables.uploads import Upload
from store.vault import open_vault
from worker.context import WorkerContext
from worker.failure import in_owners_words
from worker.fetching.cache import ContentCache
from worker.fetching.fetcher import Fetcher
from worker.fetching.policy import policy_of
from worker.fetching.sources import open_source
from worker.fetching.transfer import Transfer
from worker.inputs import Inputs, fetch_inputs
from worker.lease import Lease, StopRequestedError
from worker.ledger import Ledger
from worker.memory import make_room
from worker.packing import ARCHIVE_NAME, store_files
from worker.recorder import Recorder
from worker.sandbox.delivery import DeliveryError, delivered
from worker.sandbox.errors import ProcessMisbehavedError
from worker.sandbox.messages import (
    Begin,
    Estimate,
    GoAhead,
    GoOn,
    Opened,
    Order,
    Promise,
    Published,
    Replay,
    Searched,
    Source,
    Suspend,
    Suspended,
    Trained,
    Tried,
    storable_json,
)
from worker.sandbox.sandbox import Sandbox
from worker.sandbox.trials import check_next
from worker.time_slice import SliceOverError, TimeSlice
from worker.warm import OpenPass, WarmSlot

_RESULT = "artifact"
_REPLAY = 1000
"""Trials of a message, some 300 bytes each."""


def carry_out(context: WorkerContext, job: Job, ledger: Ledger, lease: Lease, warm: WarmSlot) -> None:
    """Run a claimed job to its end or to the end of its time slice.

    Raises:
        SliceOverError: it is queued again, and its pass is kept where there is room.
        Exception: what else ends a run of a job; its process and its files are gone then.
    """
    with ExitStack() as resources:
        opened = warm.take(job)
        if opened is None:
            opened = _open(context, job, ledger, lease, warm)
            resources.callback(opened.close)
        else:
            resources.callback(opened.close)
            ledger.enter(JobState.VALIDATING)
            ledger.enter(JobState.RUNNING, "its model was still in memory")
            opened.sandbox.tell(GoOn(), lease.heed)
        try:
            _finish(context, job, opened, ledger, lease)
        except SliceOverError as over:
            resources.pop_all()
            warm.keep(job.id, over.fence, opened)
            raise


def _open(context: WorkerContext, job: Job, ledger: Ledger, lease: Lease, warm: WarmSlot) -> OpenPass:
    """Fetch what a job works on, and have it checked and loaded."""
    with ExitStack() as resources:
        sandbox = context.sandboxes.take(job.id)
        resources.callback(sandbox.close)
        passes = ledger.passes()
        inputs = fetch_inputs(job, passes, _fetcher(context, job, lease), sandbox.inputs)
        ledger.note("job.fetched", {"sha256": dict(inputs.digests)})
        ledger.enter(JobState.VALIDATING)
        with in_owners_words(inputs):
            sandbox.make_ready(lease.heed)
            sandbox.tell(_order(context, job, inputs, sandbox), lease.heed)
            make_room(sandbox.hear(Estimate, lease.heed), context.settings, warm)
            sandbox.tell(GoAhead(), lease.heed)
            loaded = sandbox.hear(Opened, lease.heed)
        if loaded.notes:
            ledger.note("job.noted", {"notes": list(loaded.notes)})
        ledger.enter(JobState.RUNNING)
        chunk = context.settings.trace_chunk
        stored = ledger.trials_of(passes, chunk) if is_search(job) else ledger.stored_trials(chunk)
        for start in range(0, len(stored), _REPLAY):
            sandbox.tell(Replay(trials=tuple(stored[start : start + _REPLAY])), lease.heed)
        sandbox.tell(Begin(), lease.heed)
        resources.pop_all()
        return OpenPass(sandbox, inputs, loaded.shape.dimensions, stored, loaded.first_look)


def _order(context: WorkerContext, job: Job, inputs: Inputs, sandbox: Sandbox) -> Order:
    return Order(
        checkpoint=str(inputs.checkpoint),
        validation=_source(inputs.validation),
        test=None if inputs.test is None else _source(inputs.test),
        train=None if inputs.train is None else _source(inputs.train),
        config=make_config(job.preset, job.config),
        device=context.settings.device,
        shards=context.settings.shards,
        finetune=None if job.finetune is None else make_settings(job.finetune),
        output=str(sandbox.made / _RESULT),
        forms=tuple(job.forms),
        is_search=is_search(job),
        publishes=job.parent_id is None,
        upto=job.upto,
    )


def _source(source: DataSource) -> Source:
    return Source(path=source.path, columns=source.columns)


def _finish(context: WorkerContext, job: Job, opened: OpenPass, ledger: Ledger, lease: Lease) -> None:
    """Follow an open pass to its end and store what comes of it."""
    sandbox = opened.sandbox
    with in_owners_words(opened.inputs):
        if is_search(job):
            searched = sandbox.hear(Searched, lease.heed)
            _take_best(opened, searched, ledger)
        else:
            searched = _search(context, job, opened, ledger, lease)
        if searched.note is not None:
            ledger.note("job.noted", {"notes": [searched.note]})
        sandbox.hear(Trained, lease.heed)
        ledger.enter(JobState.PACKAGING)
        published = sandbox.hear(Published, lease.heed)
    sandbox.end_process()
    if job.parent_id is not None:
        ledger.succeed(None, [])  # its trace is all that the parent needs to publish the best
        return
    report = _checked(published)
    ledger.succeed(report, _store(context, job, sandbox, lease))


def _search(context: WorkerContext, job: Job, opened: OpenPass, ledger: Ledger, lease: Lease) -> Searched:
    """Store the trials of a pass as they come, to its end or the end of its time slice."""
    settings = context.settings
    config = make_config(job.preset, job.config)
    most = longest_trace(opened.dimensions, config)
    recorder = Recorder(
        ledger,
        opened.dimensions,
        config,
        stored=len(opened.trace),
        inputs=opened.inputs.digests,
        first_look=opened.first_look,
        estimate=lambda _: _promised(opened),
        batch=settings.trial_batch,
        batch_seconds=settings.trial_batch_seconds,
    )
    for trial in opened.trace:
        recorder.add(trial)
    time_slice: TimeSlice | None = None
    try:
        while not isinstance(message := opened.sandbox.hear_any(lease.heed), Searched):
            if isinstance(message, Tried):
                _take(message, opened, most, recorder)
                time_slice = time_slice or TimeSlice(ledger, settings)
                if time_slice.is_wanted():
                    opened.sandbox.tell(Suspend(), lease.heed)
            elif isinstance(message, Suspended) and time_slice is not None:
                recorder.flush()
                time_slice.yield_to_others()
                opened.sandbox.tell(GoOn(), lease.heed)
            else:
                raise ProcessMisbehavedError(f"{type(message).__name__} while it searches")
    except (StopRequestedError, PauseRequestedError):
        for message in opened.sandbox.what_is_there():
            if isinstance(message, Tried):
                _take(message, opened, most, recorder)
        recorder.flush()
        raise
    opened.promise = _estimate(message.promise)
    recorder.end()
    return message


def _take(tried: Tried, opened: OpenPass, most: int, recorder: Recorder) -> None:
    check_next(tried.trial, opened.trace, opened.dimensions, most)
    opened.trace.append(tried.trial)
    if tried.promise is not None:
        opened.promise = _estimate(tried.promise)
    recorder.add(tried.trial)


def _estimate(promise: Promise) -> PlanEstimate:
    return PlanEstimate(**promise.model_dump())


def _promised(opened: OpenPass) -> PlanEstimate:
    if opened.promise is None:
        raise ProcessMisbehavedError("its first new trial comes without what its plan promises")
    return opened.promise


def _take_best(opened: OpenPass, searched: Searched, ledger: Ledger) -> None:
    """Store the trace of the best pass, each of which was a job of its own, as the job's."""
    passes = passes_in(opened.trace)
    if searched.best >= len(passes):
        raise ProcessMisbehavedError(f"pass {searched.best} of {len(passes)} is the best")
    ledger.record(passes[searched.best], None)


def _checked(published: Published) -> dict[str, object]:
    """The report, if it is one and can be stored."""
    try:
        return storable_json(Report.model_validate(published.report))
    except (ValidationError, ValueError) as error:
        raise ProcessMisbehavedError(f"its report is none: {type(error).__name__}") from None


def _store(context: WorkerContext, job: Job, sandbox: Sandbox, lease: Lease) -> list[Artifact]:
    with ExitStack() as files:
        try:
            found = delivered(sandbox.made / _RESULT, files, context.settings.result_max_bytes)
        except DeliveryError as error:
            raise ProcessMisbehavedError(f"its result holds {error}") from None
        return store_files(found, sandbox.directory / ARCHIVE_NAME, job.id, context.storage, lease.check)


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
