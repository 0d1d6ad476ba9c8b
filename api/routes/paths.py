"""``/v1/jobs/{id}/path``: every acceptance of a pass as a model of its own, with its losses, its size and its operations."""

from fastapi import APIRouter

from api.deps import CallerDep, ReadingDep
from api.openapi import answers
from api.schemas.paths import PathRead
from api.services import paths

router = APIRouter(prefix="/jobs/{job_id}/path", tags=["trace"])


@router.get("", responses=answers(200, "The path, the untouched model first.", "path", 401, 404))
def get_path(job_id: str, caller: CallerDep, session: ReadingDep) -> PathRead:
    """See every model on the path of a pass, and which one the job gave; there are none before it has succeeded.

    A search of orders has the path of the pass that was kept. `axformer apply RESULT CHECKPOINT --upto SEQ` writes any of
    them from the job's files, without another pass.
    """
    return paths.path_of(session, caller.team_id, job_id)
