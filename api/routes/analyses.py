"""``/v1/analyses``: post an analysis, a job that reports where a model is redundant."""

from fastapi import APIRouter, BackgroundTasks, Response

from api.deps import ResourcesDep, SessionDep, SettingsDep, WriterDep
from api.openapi import answers
from api.routes.posted import IdempotencyKey, answer_of_posting
from api.services import analyses
from axformer.wire.analyses import AnalysisCreate
from axformer.wire.jobs import JobRead

router = APIRouter(prefix="/analyses", tags=["jobs"])


@router.post(
    "",
    summary="Post an analysis",
    status_code=202,
    response_model=JobRead,
    responses=answers(202, "The job that makes it is queued.", "job", 401, 409, 413, 422, 429),
)
def post_analysis(
    body: AnalysisCreate,
    caller: WriterDep,
    session: SessionDep,
    settings: SettingsDep,
    resources: ResourcesDep,
    after_commit: BackgroundTasks,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Post an analysis: a job that reports where a model is redundant, without changing it.

    It waits, runs and ends like any job, but has no trials. Its files are `analysis.json`, `analysis.html` and, with the report
    `heads`, `ranking.jsonl`; `findings` has the last line of each report. An `Idempotency-Key` works as in `POST /v1/jobs`.
    """
    created = analyses.submit(session, settings, caller.team_id, body, idempotency_key)
    return answer_of_posting(created, session, caller, resources, after_commit)
