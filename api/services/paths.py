"""The models on the path of a finished pass."""

from sqlalchemy.orm import Session

from api.schemas.paths import PathRead
from api.services import jobs
from axformer.reporting.report import PathPoint


def path_of(session: Session, team_id: str, job_id: str) -> PathRead:
    """The path of the team's job; of one that has not succeeded, or is a pass of another, it has no points.

    Raises:
        NotFoundError: the team has no such job.
    """
    found = jobs.find(session, team_id, job_id).path or []
    points = [PathPoint.model_validate(one, extra="ignore") for one in found]
    return PathRead(kept=next((point.seq for point in points if point.kept), None), data=points)
