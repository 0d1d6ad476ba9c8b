"""``/v1/jobs/{id}/path``: every acceptance of a pass as a model, with its losses, size and operations."""

from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, Path, Response

from api.deps import CallerDep, ReadingDep, ResourcesDep, SessionDep, SettingsDep, StorageDep, WriterDep
from api.http.paging import MOST_NUMBER
from api.openapi import answers
from api.routes.posted import IdempotencyKey, answer_of_posting
from api.services import exports, paths
from axformer.plan.plan import PlanFile
from axformer.wire.jobs import ExportCreate, JobRead, PathRead

router = APIRouter(prefix="/jobs/{job_id}/path", tags=["trace"])

Seq = Annotated[int, Path(ge=0, le=MOST_NUMBER, description="`seq` of a model on the path; 0 is the untouched one.")]


@router.get(
    "",
    summary="See the models on the path of a job",
    responses=answers(200, "The path, the untouched model first.", "path", 401, 404),
)
def get_path(job_id: str, caller: CallerDep, session: ReadingDep) -> PathRead:
    """See every model on the path of a pass, and which one is the job's result; there are none before it has succeeded.

    `GET /v1/jobs/{job_id}/path/{seq}/plan` returns the plan of any.
    """
    return paths.path_of(session, caller.team_id, job_id)


@router.post(
    "/{seq}/export",
    summary="Export a model on the path",
    status_code=202,
    response_model=JobRead,
    responses=answers(202, "The job that makes it is queued.", "job", 401, 404, 409, 422, 429),
)
def export_point(
    job_id: str,
    seq: Seq,
    caller: WriterDep,
    session: SessionDep,
    settings: SettingsDep,
    resources: ResourcesDep,
    after_commit: BackgroundTasks,
    body: ExportCreate | None = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Export any model on the path of a succeeded job. The export is a new job with the same references and knobs: it takes
    over the trace up to that model, makes no trials, and writes model, plan, report and the requested forms.

    It fails if the checkpoint or the data have changed. An `Idempotency-Key` works as in `POST /v1/jobs`.
    """
    created = exports.submit(session, settings, caller.team_id, job_id, seq, body or ExportCreate(), idempotency_key)
    return answer_of_posting(created, session, caller, resources, after_commit)


@router.get(
    "/{seq}/plan",
    summary="Get the plan of a model on the path",
    responses=answers(200, "The plan, as `plan.json` of a result has it.", "plan", 401, 404, 422),
)
def get_plan(job_id: str, seq: Seq, caller: CallerDep, session: ReadingDep, storage: StorageDep) -> PlanFile:
    """Get the plan of any model on the path: `axformer apply plan.json CHECKPOINT` writes the model without another pass."""
    return paths.plan_at(session, storage, caller.team_id, job_id, seq)
