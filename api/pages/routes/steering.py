"""The actions on a job's page: the same as in the API, recorded in the same log."""

from fastapi import APIRouter, BackgroundTasks
from starlette.responses import RedirectResponse, Response

from api.deps import ResourcesDep, SessionDep, StorageDep
from api.pages.context import PAGE_HEADERS
from api.pages.deps import FormDep, WriterDep
from api.services import steering
from api.services.artifacts import discard
from store.storage.storage import job_folder

router = APIRouter(prefix="/jobs/{job_id}")


@router.post("/cancel")
def cancel(job_id: str, visitor: WriterDep, _: FormDep, session: SessionDep) -> Response:
    """Cancel a job."""
    steering.cancel(session, visitor.caller, job_id)
    return _to(f"/jobs/{job_id}")


@router.post("/pause")
def pause(job_id: str, visitor: WriterDep, _: FormDep, session: SessionDep) -> Response:
    """Pause a job."""
    steering.pause(session, visitor.caller, job_id)
    return _to(f"/jobs/{job_id}")


@router.post("/resume")
def resume(
    job_id: str,
    visitor: WriterDep,
    _: FormDep,
    session: SessionDep,
    resources: ResourcesDep,
    after_commit: BackgroundTasks,
) -> Response:
    """Queue a paused job again."""
    steering.resume(session, visitor.caller, job_id)
    after_commit.add_task(resources.wakeup.wake)
    return _to(f"/jobs/{job_id}")


@router.post("/retry")
def retry(
    job_id: str,
    visitor: WriterDep,
    _: FormDep,
    session: SessionDep,
    storage: StorageDep,
    resources: ResourcesDep,
    after_commit: BackgroundTasks,
) -> Response:
    """Queue a failed or cancelled job from scratch."""
    steering.retry(session, storage, visitor.caller, job_id)
    after_commit.add_task(resources.wakeup.wake)
    return _to(f"/jobs/{job_id}")


@router.post("/delete")
def delete(
    job_id: str,
    visitor: WriterDep,
    _: FormDep,
    session: SessionDep,
    storage: StorageDep,
    after_commit: BackgroundTasks,
) -> Response:
    """Delete a job that has ended."""
    steering.delete(session, visitor.caller, job_id)
    after_commit.add_task(discard, storage, job_folder(job_id))
    return _to("/")


def _to(path: str) -> Response:
    return RedirectResponse(path, 303, headers=PAGE_HEADERS)
