"""``/v1/jobs``: post, list, look at, cancel, retry and delete jobs."""

from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, Header, Query, Response

from api.deps import CallerDep, ResourcesDep, SessionDep, SettingsDep, StorageDep
from api.openapi import answers
from api.paging import LimitDep
from api.schemas.jobs import JobCreate, JobRead
from api.schemas.page import PageRead
from api.services import jobs
from api.views import job_path, job_read, jobs_page
from store.states import JobState
from store.storage import job_folder

router = APIRouter(prefix="/jobs", tags=["jobs"])

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        pattern=r"^[\x20-\x7e]+$",
        description="Any text of your own. The same key with the same body makes one job, however often it is sent.",
        examples=["nightly-2026-11-21"],
    ),
]


@router.post("", status_code=202, responses=answers(202, "The job is queued.", "job", 401, 413, 422))
def post_job(
    body: JobCreate,
    caller: CallerDep,
    session: SessionDep,
    settings: SettingsDep,
    resources: ResourcesDep,
    response: Response,
    after_commit: BackgroundTasks,
    idempotency_key: IdempotencyKey = None,
) -> JobRead:
    """Post a job. It is stored before this answers; a worker takes it from the queue."""
    created = jobs.submit(session, settings, caller.team_id, body, idempotency_key)
    response.headers["Location"] = job_path(created.job.id)
    if created.is_new:
        after_commit.add_task(resources.wakeup.wake)
    else:
        response.headers["Idempotent-Replayed"] = "true"
    return job_read(created.job, jobs.passes(session, [created.job]))


@router.get("", responses=answers(200, "Your team's jobs, newest first.", "jobs", 401, 422))
def list_jobs(
    caller: CallerDep,
    session: SessionDep,
    limit: LimitDep,
    after: Annotated[str | None, Query(description="The `next` of the page before, or a job's id.")] = None,
    state: Annotated[list[JobState], Query(description="Only in these states.")] = [],  # noqa: B006 - never changed
    label: Annotated[list[str], Query(description="Only with all of these, written `key:value`.")] = [],  # noqa: B006
) -> PageRead[JobRead, str]:
    """List your team's jobs. The passes of a search of orders stand with it, not by themselves."""
    page = jobs.list_jobs(session, caller.team_id, limit=limit.page, after=after, states=state, labels=label)
    return jobs_page(page, jobs.passes(session, page.items))


@router.get("/{job_id}", responses=answers(200, "The job.", "job", 401, 404))
def get_job(job_id: str, caller: CallerDep, session: SessionDep) -> JobRead:
    """Look at a job."""
    job = jobs.find(session, caller.team_id, job_id)
    return job_read(job, jobs.passes(session, [job]))


@router.delete("/{job_id}", status_code=204, responses=answers(204, "The job is gone.", None, 401, 404, 409))
def delete_job(
    job_id: str, caller: CallerDep, session: SessionDep, storage: StorageDep, after_commit: BackgroundTasks
) -> None:
    """Delete a job that has ended, with its trace, events, files and passes."""
    jobs.delete(session, caller.team_id, job_id)
    after_commit.add_task(storage.delete, job_folder(job_id))


@router.post(
    "/{job_id}/cancel",
    status_code=202,
    responses=answers(202, "The job is cancelled, or its worker is told to stop.", "job", 401, 404, 409),
)
def cancel_job(job_id: str, caller: CallerDep, session: SessionDep) -> JobRead:
    """Cancel a job: a queued one at once, a running one at the next trial. Doing so again changes nothing.

    A search of orders ends when all its passes have.
    """
    job = jobs.cancel(session, caller.team_id, job_id)
    return job_read(job, jobs.passes(session, [job]))


@router.post(
    "/{job_id}/retry",
    status_code=202,
    responses=answers(202, "The job is queued again.", "job", 401, 404, 409),
)
def retry_job(
    job_id: str,
    caller: CallerDep,
    session: SessionDep,
    storage: StorageDep,
    resources: ResourcesDep,
    after_commit: BackgroundTasks,
) -> JobRead:
    """Queue a failed or cancelled job afresh, under the same id. Its trace begins anew; its events go on.

    A search of orders gets new passes.
    """
    job = jobs.retry(session, storage, caller.team_id, job_id)
    after_commit.add_task(resources.wakeup.wake)
    return job_read(job, jobs.passes(session, [job]))
