"""Open a claimed job: fetch, check and load its inputs, and replay its stored trials."""

from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from axformer.scores.labelling import Labels
from axformer.wire.analyses import AnalysisRun
from axformer.wire.references import says_nothing, shown_name
from axformer.wire.run import SettledRun
from axformer.wire.states import JobKind
from axformer.wire.steps import StepName
from store.references import shown
from store.repositories import leases
from store.repositories.jobs import find_job
from store.repositories.labels import agreed_on, labelled_of, labels_of
from store.session import session_scope
from store.states import JobState
from store.tables.jobs import Job
from worker.base.context import WorkerContext
from worker.job.conversation import Conversation
from worker.job.failure import with_original_uris
from worker.job.inputs import JobInputs, fetch_inputs, fetcher_of
from worker.job.lease import Lease
from worker.job.ledger import Ledger, StepWriter
from worker.job.time_slice import TimeSlice
from worker.job.warm import OpenJob, WarmSlot, make_room
from worker.sandbox.delivery import RESULT
from worker.sandbox.messages import AnalysisOrder, JobOrder
from worker.sandbox.sandbox import Sandbox
from worker.sandbox.trials import most_trials

BEGINS_ANEW = (
    "the training begins anew: the job was in it on another machine, or before its first checkpoint, so there is no state to "
    "continue from"
)


def open_job(
    context: WorkerContext, job: Job, ledger: Ledger, lease: Lease, warm: WarmSlot, time_slice: TimeSlice
) -> OpenJob:
    """Have a job's process load the model and continue after the last stored trial.

    Raises:
        FetchError, InputsChangedError: its inputs cannot be fetched, or have changed.
        RefusedInputError: its inputs are refused, or too large for all workers.
        LeftToLargerError: they are too large for this one.
        SliceOverError: its new head is trained, and the job is queued again; what was trained is kept.
        Exception: any other end of the run; its process and its files are removed.
    """
    with ExitStack() as resources:
        sandbox = context.sandboxes.take(job.id)
        resources.callback(sandbox.close)
        fetched = fetch_inputs(job, fetcher_of(context, job, lease.check_stop), sandbox.inputs)
        inputs = replace(fetched, paths={part: sandbox.seen(path) for part, path in fetched.paths.items()})
        ledger.write(leases.add_event, "job.fetched", {"sha256": dict(inputs.digests)})
        ledger.write(leases.set_state, JobState.VALIDATING)
        most_silent = context.settings.silent_opening_seconds
        conversation = Conversation(sandbox, lease.check_stop, time_slice, StepWriter(ledger), most_silent)
        order = _order(context, job, inputs, sandbox)
        begins_anew = _has_trained(job, order.run) and not sandbox.state.is_dir()
        with with_original_uris(inputs):
            loaded = conversation.open(order, partial(make_room, settings=context.settings, warm=warm, ledger=ledger))
        if loaded.notes:
            ledger.write(leases.add_event, "job.noted", {"notes": list(loaded.notes)})
        if begins_anew:
            ledger.write(leases.add_event, "job.noted", {"notes": [BEGINS_ANEW]})
        ledger.write(leases.set_state, JobState.RUNNING)
        stored = ledger.stored_trials(context.settings.trace_chunk)
        conversation.begin(stored)
        resources.pop_all()
        dimensions = loaded.shape.dimensions
        most = most_trials(dimensions, order.knobs)
        return OpenJob(sandbox, inputs, dimensions, most, stored, loaded.first_look, labels=order.labels)


def _has_trained(job: Job, settled: SettledRun | None) -> bool:
    """Whether an earlier process of a job had begun to train."""
    if settled is None:
        return False
    progress, config = job.progress or {}, settled.knobs
    if settled.run.head is not None:
        return bool(progress)  # there is none before the training of the head has told of a step
    if config.needs.polish or (settled.run.train is not None and config.needs.trains_each):
        return bool(progress.get("done"))
    step = progress.get("step")
    return step is not None and step["name"] == StepName.TRAINING


def _order(context: WorkerContext, job: Job, inputs: JobInputs, sandbox: Sandbox) -> JobOrder:
    paths = {part: str(path) for part, path in inputs.paths.items()}
    references = {part: shown(source["uri"]) for part, source in job.sources.items()}
    settled = analysis = None
    if job.kind is JobKind.ANALYSIS:
        asked = AnalysisRun.model_validate(job.run).located(paths)
        analysis = AnalysisOrder(run=asked, references=references, digests=dict(inputs.digests))
    else:
        settled = SettledRun.model_validate(job.settled).located(references)
    labels, points = _labels(context, job)
    return JobOrder(
        kind=job.kind,
        run=settled,
        paths=paths,
        analysis=analysis,
        device=context.settings.device,
        output=str(sandbox.seen(sandbox.made / RESULT)),
        state=str(sandbox.seen(sandbox.state)),
        upto=job.upto,
        labels=dict(labels),
        points=points,
        names=_names(job, inputs),
    )


def _labels(context: WorkerContext, job: Job) -> tuple[Labels, float | None]:
    """The labels that certify a form of the model that an export hands out, and within what points; none if they do not."""
    if job.exported_from is None:
        return {}, None
    with session_scope(context.sessions) as session:
        known = labelled_of(find_job(session, job.exported_from, job.team_id))
        form = next((one for one in known.forms if job.upto in one.certified), None) if known else None
        if form is None:
            return {}, None
        return agreed_on(labels_of(session, job.exported_from)), float(form.certificate["points"])


def _names(job: Job, inputs: JobInputs) -> dict[str, str]:
    """The owner's names for the inputs; a checkpoint whose own says nothing has that of the job."""
    names = {part: shown_name(name) if "://" in name else name for part, name in inputs.names.items()}
    return names | {"checkpoint": job.name} if says_nothing(names["checkpoint"]) else names
