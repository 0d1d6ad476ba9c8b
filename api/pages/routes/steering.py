"""The actions on a job's page: the same as in the API, recorded in the same log."""

from fastapi import APIRouter, BackgroundTasks, Request
from starlette.responses import RedirectResponse, Response

from api.deps import ResourcesDep, SessionDep, StorageDep
from api.pages.context import PAGE_HEADERS
from api.pages.deps import FormDep, WriterDep
from api.services import steering
from api.services.artifacts import discard
from store.storage.storage import job_folder

router = APIRouter(prefix="/jobs/{job_id}")


@router.post("/cancel")
@router.post("/pause")
@router.post("/resume")
@router.post("/retry")
@router.post("/delete")
def steer(
    job_id: str,
    request: Request,
    visitor: WriterDep,
    _: FormDep,
    session: SessionDep,
    storage: StorageDep,
    resources: ResourcesDep,
    after_commit: BackgroundTasks,
) -> Response:
    """Do what the button says: cancel a job, pause it, queue it again with its trace or from scratch, or delete it."""
    caller, leads_to = visitor.caller, f"/jobs/{job_id}"
    match request.url.path.rpartition("/")[2]:
        case "cancel":
            steering.cancel(session, caller, job_id)
        case "pause":
            steering.pause(session, caller, job_id)
        case "resume":
            steering.resume(session, caller, job_id)
            after_commit.add_task(resources.wakeup.wake)
        case "retry":
            steering.retry(session, storage, caller, job_id)
            after_commit.add_task(resources.wakeup.wake)
        case "delete":
            steering.delete(session, caller, job_id)
            after_commit.add_task(discard, storage, job_folder(job_id))
            leads_to = "/"
    return RedirectResponse(leads_to, 303, headers=PAGE_HEADERS)
