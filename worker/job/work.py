"""The work on a claimed job: open its process, or take up the waiting one; search, export or analyze; publish the result."""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import ValidationError

from axformer.forms.kinds import COMPACT
from axformer.scores.certificate import certify_sheet
from axformer.wire.analysis import Analysis
from axformer.wire.answer_sheet import SHEET, AnswerSheet
from axformer.wire.report import Report
from axformer.wire.run import SettledRun
from axformer.wire.states import JobKind
from store.errors import PauseRequestedError
from store.repositories import leases
from store.states import JobState
from store.summaries import summary_of
from store.tables.files import Artifact
from store.tables.jobs import Job
from worker.base.context import WorkerContext
from worker.base.packing import ARCHIVE_NAME, store_files, store_provenance
from worker.base.trees import remove_tree
from worker.job.conversation import Conversation
from worker.job.failure import with_original_uris
from worker.job.lease import Lease, StopRequestedError
from worker.job.ledger import Ledger, StepWriter
from worker.job.opening import open_job
from worker.job.recorder import Recorder
from worker.job.time_slice import SliceOverError, TimeSlice
from worker.job.warm import OpenJob, WarmSlot
from worker.sandbox.delivery import RESULT, DeliveryError, delivered
from worker.sandbox.errors import ProcessMisbehavedError
from worker.sandbox.messages import Published, Searched, TrialMade, storable_json


@dataclass(frozen=True)
class ClaimedJob:
    """A claimed job with an open process, and everything needed to carry it out."""

    context: WorkerContext
    job: Job
    opened: OpenJob
    ledger: Ledger
    lease: Lease

    tell: StepWriter
    """Writes what the process does at the moment."""

    time_slice: TimeSlice
    """When other jobs get their turn."""

    def conversation(self, flush: Callable[[], None] = lambda: None) -> Conversation:
        """The conversation with the job's process, whose steps are written to the database.

        Args:
            flush: writes what is pending, before a step is written and before the job is queued again.
        """
        sandbox, most_silent = self.opened.sandbox, self.context.settings.silent_seconds
        return Conversation(sandbox, self.lease.check_stop, self.time_slice, self.tell, most_silent, flush)


def carry_out(context: WorkerContext, job: Job, ledger: Ledger, lease: Lease, warm: WarmSlot) -> None:
    """Run a claimed job to its end or to the end of its time slice.

    Raises:
        SliceOverError: the job is queued again; its process is kept if there is room.
        Exception: any other end of the run; its process and its files are removed.
    """
    time_slice = TimeSlice(ledger, context.settings, is_last_attempt=job.attempt >= job.max_attempts)
    with ExitStack() as resources:
        waiting = warm.take(job)
        opened = open_job(context, job, ledger, lease, warm, time_slice) if waiting is None else waiting
        resources.callback(opened.close)
        work = ClaimedJob(context, job, opened, ledger, lease, StepWriter(ledger), time_slice)
        if waiting is not None:
            ledger.write(leases.set_state, JobState.VALIDATING)
            ledger.write(leases.set_state, JobState.RUNNING, "its model was still in memory")
            work.conversation().go_on()
        try:
            with with_original_uris(opened.inputs):
                if job.kind is JobKind.ANALYSIS:
                    _analyze(work)
                else:
                    _make_model(work)
        except SliceOverError as over:
            resources.pop_all()
            warm.keep(job.id, over.fence, opened)
            raise


def _make_model(work: ClaimedJob) -> None:
    """Record the trials of a run until the search ends, or replay those of an export, and publish the model."""
    if work.opened.searched is None:
        is_export = work.job.kind is JobKind.EXPORT
        work.opened.searched = _replay(work) if is_export else _search(work, _recorder_of(work))
    work.conversation().trained()
    if work.opened.searched.note is not None:
        work.ledger.write(leases.add_event, "job.noted", {"notes": [work.opened.searched.note]})
    _publish(work, Report)


def _search(work: ClaimedJob, recorder: Recorder) -> Searched:
    conversation = work.conversation(recorder.flush)
    try:
        while isinstance(step := conversation.next(), TrialMade):
            _take(work, recorder, step)
    except (StopRequestedError, PauseRequestedError):
        for tried in conversation.arrived_trials():
            _take(work, recorder, tried)
        recorder.flush()
        raise
    work.opened.speed = step.speed
    recorder.end(step.kept)
    return step


def _take(work: ClaimedJob, recorder: Recorder, tried: TrialMade) -> None:
    work.opened.take(tried)
    recorder.add(tried.trial)


def _replay(work: ClaimedJob) -> Searched:
    searched = work.conversation().searched()
    work.opened.speed = searched.speed
    _recorder_of(work).end(searched.kept)
    return searched


def _analyze(work: ClaimedJob) -> None:
    """Wait for the reports on a model, which has no trials, and publish them."""
    work.ledger.write(leases.add_trials, [], _progress(work))
    work.conversation().trained()
    _publish(work, Analysis)


def _progress(work: ClaimedJob) -> dict[str, Any]:
    """Progress without trials, which only has steps; a job that goes on elsewhere compares the inputs."""
    opened = work.opened
    none: dict[str, Any] = {"done": 0, "known": 0, "seconds": 0.0, "seconds_left": None}
    known = {"inputs": dict(opened.inputs.digests), "first_look": opened.first_look}
    return none | known | {"dimensions": asdict(opened.dimensions)}


def _recorder_of(work: ClaimedJob) -> Recorder:
    """A recorder that continues after the stored trials of a job."""
    opened, settings = work.opened, work.context.settings
    stored = opened.trials
    recorder = Recorder(
        work.ledger,
        opened.dimensions,
        SettledRun.model_validate(work.job.settled).knobs,
        stored=len(stored),
        inputs=opened.inputs.digests,
        first_look=opened.first_look,
        speed=lambda: opened.speed,
        batch=settings.trial_batch,
        batch_seconds=settings.trial_batch_seconds,
    )
    for trial in stored:
        recorder.add(trial)
    return recorder


def _publish(work: ClaimedJob, shape: type[Report | Analysis]) -> None:
    """Wait for the files, store them, and record the success of the job.

    Raises:
        ProcessMisbehavedError: the files are not a result.
    """
    work.ledger.write(leases.set_state, JobState.PACKAGING)
    published = work.conversation().published()
    work.opened.sandbox.end_process()
    report = _checked(published, shape, len(work.opened.trials))
    _check_certificate(work, report)
    work.ledger.write(leases.finish_succeeded, report, _store(work))
    remove_tree(work.opened.sandbox.state)


_SUMMARY_BYTES = 2**20
"""Most bytes of what lists and boards load of each job."""


def _checked(published: Published, shape: type[Report | Analysis], trials: int) -> dict[str, Any]:
    """Check that the report is valid, no longer than its job explains, and can be stored.

    Args:
        trials: the job's trials; the path has no more models.
    """
    try:
        report = storable_json(shape.model_validate(published.report))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part)[:40] for part in first["loc"][:_DEEPEST])
        raise ProcessMisbehavedError(f"its report is not valid: {first['type']} at '{place}'") from None
    except ValueError as error:
        raise ProcessMisbehavedError(f"its report is not valid: {error}") from None
    if len(report.get("path", ())) > max(trials, 1):
        raise ProcessMisbehavedError(
            f"its report is not valid: {len(report['path'])} models in 'path' of {trials} trials"
        )
    if len(json.dumps(summary_of(report))) > _SUMMARY_BYTES:
        raise ProcessMisbehavedError(f"its report is not valid: its summary has more than {_SUMMARY_BYTES:,} bytes")
    return report


def _check_certificate(work: ClaimedJob, report: Mapping[str, Any]) -> None:
    """Compute the certificates of the model and of its forms again, from labels and the answers beside the report, if there are
    any.

    Raises:
        ProcessMisbehavedError: they are no answers, or give another certificate.
    """
    told, place = {COMPACT: report.get("certificate")}, work.opened.sandbox.made / RESULT / SHEET
    if work.job.kind is JobKind.ANALYSIS or not os.path.lexists(place):
        return
    told |= {form["name"]: form["certificate"] for form in report["forms"] if form["name"] != COMPACT}
    with ExitStack() as opened:
        try:
            content = delivered(place.parent, opened, work.context.settings.result_max_bytes)[SHEET].read(
                _SHEET_BYTES + 1
            )
            sheet = AnswerSheet.model_validate_json(content[: _SHEET_BYTES + 1])
        except (DeliveryError, ValidationError) as error:
            raise ProcessMisbehavedError(f"its answers are not valid: {type(error).__name__}") from None
    for form, certificate in told.items():
        if certificate is None:
            continue
        asked = sheet.model_copy(update={"points": certificate["points"]})
        found = certify_sheet(asked, form, work.opened.labels).model_dump(mode="json")
        differing = [name for name in _CERTIFIED if found[name] != certificate[name]]
        if differing:
            raise ProcessMisbehavedError(f"its answers give another certificate of {form}: {', '.join(differing)}")


_CERTIFIED = ("points", "rows", "unlabelled", "metric", "test", "tested", "passed", "kept")
_SHEET_BYTES = 2**28
_DEEPEST = 6
"""Most parts of a place in a report that a message names; its words may be of the process's own making."""


def _store(work: ClaimedJob) -> list[Artifact]:
    sandbox, context = work.opened.sandbox, work.context
    with ExitStack() as files:
        try:
            result = delivered(sandbox.made / RESULT, files, context.settings.result_max_bytes)
        except DeliveryError as error:
            raise ProcessMisbehavedError(f"its result is refused: {error}") from None
        archive = sandbox.directory / ARCHIVE_NAME
        stored = store_files(result, archive, work.job.id, context.storage, work.lease.check)
    made_from = work.opened.inputs.digests
    return [*stored, store_provenance(stored, work.job, made_from, context.name, context.settings, context.storage)]
