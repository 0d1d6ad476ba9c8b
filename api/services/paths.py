"""The models on the path of a finished pass."""

from sqlalchemy.orm import Session

from api.errors import NoSuchObjectError
from api.services import artifacts, jobs
from api.services.exports import no_point
from axformer.errors import PlanError
from axformer.plan.elements import Dimensions
from axformer.plan.path import Stop, file_at
from axformer.plan.plan import PlanFile, parse_plan_file
from axformer.wire.jobs import PathRead
from axformer.wire.report import PathPoint
from store.repositories.trace_views import standing_trials
from store.storage.storage import Storage
from store.tables.jobs import Job

_PLAN = "plan.json"


def path_of(session: Session, team_id: str, job_id: str) -> PathRead:
    """The path of the team's job; empty if it has not succeeded.

    Raises:
        NoSuchObjectError: the team has no such job.
    """
    points = points_of(jobs.find(session, team_id, job_id))
    return PathRead(kept=next((point.seq for point in points if point.kept), None), data=points)


def points_of(job: Job) -> list[PathPoint]:
    """The points on a job's path; empty before its end.

    Raises:
        ValidationError: the path is of an earlier version, which tells less of its models.
    """
    return [PathPoint.model_validate(one, extra="ignore") for one in job.path or []]


def plan_at(session: Session, storage: Storage, team_id: str, job_id: str, seq: int) -> PlanFile:
    """The plan of one model on the path of the team's job.

    Raises:
        NoSuchObjectError: the team has no such job, the job has not succeeded, its trial ``seq`` made no model, or what a
            worker handed on as its plan is none.
    """
    job = jobs.find(session, team_id, job_id)
    kept = artifacts.download(session, storage, team_id, job_id, _PLAN)
    trace = standing_trials(session, job.id)
    if all(trial.seq != seq for trial in trace):
        raise no_point(job_id, seq)
    try:
        file = parse_plan_file(b"".join(kept.read(0, kept.size)).decode())
        return file_at(file, Stop(trace, seq), _dimensions(job))
    except (PlanError, UnicodeDecodeError) as error:
        raise NoSuchObjectError(
            f"the {_PLAN} of job {job_id} does not go with its trace: {error}; retrying does not help; post the job again",
            code="point_not_found",
        ) from None


def _dimensions(job: Job) -> Dimensions:
    """Dimensions of the model before the pass, as the worker recorded them.

    Raises:
        PlanError: it has not.
    """
    noted = (job.progress or {}).get("dimensions")
    if not noted:
        raise PlanError("the job does not say of what model it was")
    return Dimensions(**noted)
