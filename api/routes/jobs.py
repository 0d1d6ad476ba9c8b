"""``/v1/jobs``: post, list, look at, cancel, pause, resume, retry, label and delete jobs."""

from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, Query, Response

from api.deps import CallerDep, ReadingDep, ResourcesDep, SessionDep, SettingsDep, StorageDep, WriterDep
from api.http.answers import as_json
from api.http.paging import LimitDep
from api.openapi import answers
from api.routes.posted import IdempotencyKey, answer_of_posting
from api.services import handovers, jobs, labelling, posting, queue, steering
from api.services.artifacts import discard
from api.views.jobs import job_read, jobs_page
from axformer.wire.base import PageRead
from axformer.wire.bulk import BulkCancel, BulkRead
from axformer.wire.handovers import DeliverTo
from axformer.wire.jobs import JobCreate, JobRead
from axformer.wire.labelling import LabellingRead, LabelsCreate, NeededRead
from axformer.wire.states import JobKind, JobOutcome
from store.states import JobState
from store.storage.storage import job_folder

router = APIRouter(prefix="/jobs", tags=["jobs"])


@router.post(
    "",
    summary="Post a job",
    status_code=202,
    response_model=JobRead,
    responses=answers(202, "The job is queued.", "job", 401, 409, 413, 422, 429),
)
def post_job(
    body: JobCreate,
    caller: WriterDep,
    session: SessionDep,
    settings: SettingsDep,
    resources: ResourcesDep,
    after_commit: BackgroundTasks,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Post a job. It is stored before this answers; a worker takes it from the queue.

    With an `Idempotency-Key` the request may be repeated after any failure. A known key gets the first answer again, with
    `Idempotent-Replayed: true`; it is known as long as its job exists.
    """
    created = posting.submit(session, settings, caller.team_id, body, idempotency_key)
    return answer_of_posting(created, session, caller, resources, after_commit)


@router.get(
    "",
    summary="List jobs",
    response_model=PageRead[JobRead, str],
    responses=answers(200, "Your team's jobs, newest first.", "jobs", 401, 422),
)
def list_jobs(
    caller: CallerDep,
    session: ReadingDep,
    limit: LimitDep,
    after: Annotated[str | None, Query(description="The `next` of the page before, or a job's id.")] = None,
    state: Annotated[list[JobState], Query(description="Only in these states.")] = [],  # noqa: B006 - never changed
    kind: Annotated[list[JobKind], Query(description="Only of these kinds.")] = [],  # noqa: B006
    label: Annotated[list[str], Query(description="Only with all of these, written `key:value`.")] = [],  # noqa: B006
    outcome: Annotated[
        JobOutcome | None, Query(description="Only succeeded jobs that reached their target, or that missed it.")
    ] = None,
) -> Response:
    """List your team's jobs."""
    page = jobs.list_jobs(
        session, caller.team_id, limit=limit.page, after=after, states=state, kinds=kind, labels=label, outcome=outcome
    )
    return as_json(jobs_page(page))


@router.post(
    "/cancel", summary="Cancel many jobs", responses=answers(200, "What became of each job.", "bulk", 401, 422)
)
def cancel_jobs(body: BulkCancel, caller: WriterDep, session: SessionDep) -> BulkRead:
    """Cancel many jobs, selected by id, labels or state. The answer reports each job separately."""
    return steering.cancel_many(session, caller, body)


@router.get(
    "/{job_id}", summary="Look at a job", response_model=JobRead, responses=answers(200, "The job.", "job", 401, 404)
)
def get_job(job_id: str, caller: CallerDep, session: ReadingDep, resources: ResourcesDep) -> Response:
    """Look at a job and, while it is queued, at its place in the queue."""
    job = jobs.find(session, caller.team_id, job_id)
    is_queued = job.state is JobState.QUEUED
    place = queue.place_of(resources.queue_views.get(), caller, job) if is_queued else None
    return as_json(job_read(job, place))


@router.delete(
    "/{job_id}",
    summary="Delete a job",
    status_code=204,
    responses=answers(204, "The job is gone.", None, 401, 404, 409),
)
def delete_job(
    job_id: str, caller: WriterDep, session: SessionDep, storage: StorageDep, after_commit: BackgroundTasks
) -> None:
    """Delete a job that has ended, with its trace, events and files."""
    steering.delete(session, caller, job_id)
    after_commit.add_task(discard, storage, job_folder(job_id))


@router.post(
    "/{job_id}/cancel",
    summary="Cancel a job",
    status_code=202,
    responses=answers(202, "The job is cancelled, or its worker is told to stop.", "job", 401, 404, 409),
)
def cancel_job(job_id: str, caller: WriterDep, session: SessionDep) -> JobRead:
    """Cancel a job: a queued one at once, a running one at the next trial. Repeating this changes nothing."""
    job = steering.cancel(session, caller, job_id)
    return job_read(job)


@router.post(
    "/{job_id}/pause",
    summary="Pause a job",
    status_code=202,
    responses=answers(202, "The job is paused, or its worker is told to give it back.", "job", 401, 404, 409),
)
def pause_job(job_id: str, caller: WriterDep, session: SessionDep) -> JobRead:
    """Pause a job: a queued one at once, a running one at the next trial. It keeps its trace. Repeating this changes nothing.

    A job that is packaging is about to end and cannot be paused.
    """
    job = steering.pause(session, caller, job_id)
    return job_read(job)


@router.post(
    "/{job_id}/resume",
    summary="Resume a job",
    status_code=202,
    responses=answers(202, "The job is queued again, or was never paused.", "job", 401, 404, 409),
)
def resume_job(
    job_id: str, caller: WriterDep, session: SessionDep, resources: ResourcesDep, after_commit: BackgroundTasks
) -> JobRead:
    """Queue a paused job again; it continues where its trace ends. A queued or running job stays unchanged."""
    job = steering.resume(session, caller, job_id)
    after_commit.add_task(resources.wakeup.wake)
    return job_read(job)


@router.post(
    "/{job_id}/retry",
    summary="Retry a job",
    status_code=202,
    responses=answers(202, "The job is queued again.", "job", 401, 404, 409, 429),
)
def retry_job(
    job_id: str,
    caller: WriterDep,
    session: SessionDep,
    storage: StorageDep,
    resources: ResourcesDep,
    after_commit: BackgroundTasks,
) -> JobRead:
    """Queue a failed or cancelled job from scratch under the same id. Its trace starts over; its events continue."""
    job = steering.retry(session, storage, caller, job_id)
    after_commit.add_task(resources.wakeup.wake)
    return job_read(job)


@router.post(
    "/{job_id}/deliver",
    summary="Put a job's files somewhere",
    status_code=202,
    responses=answers(
        202, "The files are put there, or will be when the job has succeeded.", "job", 401, 404, 409, 422
    ),
)
def deliver_job(job_id: str, body: DeliverTo, caller: WriterDep, session: SessionDep, settings: SettingsDep) -> JobRead:
    """Have a worker put the files of a job into a bucket or a repository of the model hub, with your token.

    Of a job that has not ended, that happens when it has succeeded. This replaces what was asked for before, and repeats it
    after a failure: `deliver` of the job says how far it is.
    """
    job = handovers.deliver(session, settings, caller, job_id, body)
    return job_read(job)


@router.get(
    "/{job_id}/needed",
    summary="See which labels would certify more",
    responses=answers(200, "The rows, in the order in which they are asked.", "needed", 401, 404, 409),
)
def get_needed(job_id: str, caller: CallerDep, session: ReadingDep, storage: StorageDep) -> NeededRead:
    """See which rows of a finished job with unlabelled rows need a label: only those whose answers changed, and only as long
    as a smaller model can still be certified. With them comes what is certified now, and what the next models take.

    The rows have no answers, so that nobody who labels them knows which model said what.
    """
    return labelling.needed_of(labelling.find(session, storage, caller.team_id, job_id))


@router.post(
    "/{job_id}/labels",
    summary="Label changed answers",
    responses=answers(200, "What is certified now.", "labelled", 401, 404, 409, 413, 422),
)
def post_labels(
    job_id: str,
    body: LabelsCreate,
    caller: WriterDep,
    session: SessionDep,
    storage: StorageDep,
    settings: SettingsDep,
    resources: ResourcesDep,
    after_commit: BackgroundTasks,
) -> LabellingRead:
    """Label rows of a finished job, by the names of classes or by their indices, in any order and any number of requests. All
    labels of a request are stored, or none.

    A label stands for the key that gave it, and replaces that key's earlier one. Where people disagree, a row counts as
    unlabelled. Once a model is certified that is smaller than the result, it is exported by itself, as a job.
    """
    found, has_new_export = labelling.give(session, storage, settings, caller, job_id, body)
    if has_new_export:
        after_commit.add_task(resources.wakeup.wake)
    return found.read
