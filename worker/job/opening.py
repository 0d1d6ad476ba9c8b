"""Open a claimed job: fetch, check and load its inputs, and replay its stored trials."""

from contextlib import ExitStack
from functools import partial

from axformer.config import RunConfig, make_config
from axformer.data.source import DataSource
from axformer.methods.outline import outline_of
from axformer.repair.settings import make_settings
from axformer.wire.heads import NewHead
from axformer.wire.names import says_nothing, shown_name
from axformer.wire.steps import StepName
from store.references import shown
from store.states import JobState
from store.tables.jobs import Job
from worker.base.context import WorkerContext
from worker.job.conversation import Conversation
from worker.job.failure import with_original_uris
from worker.job.inputs import JobInputs, fetch_inputs, fetcher_of
from worker.job.lease import Lease
from worker.job.ledger import Ledger, StepWriter
from worker.job.open_job import OpenJob
from worker.job.time_slice import TimeSlice
from worker.job.warm import WarmSlot, make_room
from worker.sandbox.delivery import RESULT
from worker.sandbox.messages import AnalysisOrder, Order, Source
from worker.sandbox.sandbox import Sandbox
from worker.sandbox.trials import limits_of

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
        RefusedInputError: its inputs are refused, or too large for this worker.
        SliceOverError: its new head is trained, and the job is queued again; what was trained is kept.
        Exception: any other end of the run; its process and its files are removed.
    """
    with ExitStack() as resources:
        sandbox = context.sandboxes.take(job.id)
        resources.callback(sandbox.close)
        inputs = fetch_inputs(job, fetcher_of(context, job, lease.check_stop), sandbox.inputs)
        ledger.note("job.fetched", {"sha256": dict(inputs.digests)})
        ledger.enter(JobState.VALIDATING)
        conversation = Conversation(sandbox, lease.check_stop, time_slice, StepWriter(ledger))
        order = _order(context, job, inputs, sandbox)
        begins_anew = _has_trained(job, order.config) and not sandbox.state.is_dir()
        with with_original_uris(inputs):
            loaded = conversation.open(order, partial(make_room, settings=context.settings, warm=warm))
        if loaded.notes:
            ledger.note("job.noted", {"notes": list(loaded.notes)})
        if begins_anew:
            ledger.note("job.noted", {"notes": [BEGINS_ANEW]})
        ledger.enter(JobState.RUNNING)
        stored = ledger.stored_trials(context.settings.trace_chunk)
        conversation.begin(stored)
        resources.pop_all()
        dimensions = loaded.shape.dimensions
        return OpenJob(sandbox, inputs, dimensions, limits_of(dimensions, order.config), stored, loaded.first_look)


def _has_trained(job: Job, config: RunConfig) -> bool:
    """Whether an earlier process of a job had begun to train."""
    progress = job.progress or {}
    if job.head is not None:
        return bool(progress)  # there is none before the training of the head has told of a step
    if config.polish_epochs or (job.train is not None and outline_of(config).trains_each(config)):
        return bool(progress.get("done"))
    step = progress.get("step")
    return step is not None and step["name"] == StepName.TRAINING


def _order(context: WorkerContext, job: Job, inputs: JobInputs, sandbox: Sandbox) -> Order:
    return Order(
        kind=job.kind,
        checkpoint=str(inputs.checkpoint),
        validation=_source(inputs.validation),
        test=None if inputs.test is None else _source(inputs.test),
        calibrate=None if inputs.calibrate is None else _source(inputs.calibrate),
        train=None if inputs.train is None else _source(inputs.train),
        config=make_config(job.preset, job.config),
        device=context.settings.device,
        shards=context.settings.shards,
        finetune=None if job.finetune is None else make_settings(job.finetune),
        head=None if job.head is None else NewHead.model_validate(job.head),
        output=str(sandbox.made / RESULT),
        state=str(sandbox.state),
        forms=tuple(job.forms),
        upto=job.upto,
        names=_names(job, inputs),
        analysis=_analysis(job, inputs),
    )


def _analysis(job: Job, inputs: JobInputs) -> AnalysisOrder | None:
    if job.analysis is None:
        return None
    against = None if inputs.against is None else str(inputs.against)
    asked = {name: job.analysis.get(name) for name in ("reports", "rows")}
    sources = {"checkpoint": job.checkpoint, "validation": job.validation, "train": job.train}
    references = {part: shown(source["uri"]) for part, source in sources.items() if source is not None}
    return AnalysisOrder(against=against, references=references, digests=dict(inputs.digests), **asked)


def _names(job: Job, inputs: JobInputs) -> dict[str, str]:
    """The owner's names for the inputs; a checkpoint whose own says nothing has that of the job."""
    names = {part: shown_name(name) if "://" in name else name for part, name in inputs.names.items()}
    return names | {"checkpoint": job.name} if says_nothing(names["checkpoint"]) else names


def _source(source: DataSource) -> Source:
    return Source(path=source.path, columns=source.columns)
