"""``/v1/jobs/{id}/path``: every acceptance of a pass as a model of its own, with its losses, its size and its operations."""

from typing import Annotated

from fastapi import APIRouter, Path

from api.deps import CallerDep, ReadingDep, StorageDep
from api.openapi import answers
from api.paging import MOST_NUMBER
from api.schemas.paths import PathRead
from api.services import paths
from axformer.plan import PlanFile

router = APIRouter(prefix="/jobs/{job_id}/path", tags=["trace"])


@router.get("", responses=answers(200, "The path, the untouched model first.", "path", 401, 404))
def get_path(job_id: str, caller: CallerDep, session: ReadingDep) -> PathRead:
    """See every model on the path of a pass, and which one the job gave; there are none before it has succeeded.

    A search of orders has the path of the pass that was kept. `GET /v1/jobs/{job_id}/path/{seq}/plan` hands out any of them.
    """
    return paths.path_of(session, caller.team_id, job_id)


@router.get(
    "/{seq}/plan",
    responses=answers(200, "The plan, as `plan.json` of a result has it.", "plan", 401, 404, 422),
)
def get_plan(
    job_id: str,
    seq: Annotated[
        int, Path(ge=0, le=MOST_NUMBER, description="`seq` of a model on the path; 0 is the untouched one.")
    ],
    caller: CallerDep,
    session: ReadingDep,
    storage: StorageDep,
) -> PlanFile:
    """Get the plan of any model on the path: `axformer apply plan.json CHECKPOINT` makes the model, without another pass."""
    return paths.plan_at(session, storage, caller.team_id, job_id, seq)
