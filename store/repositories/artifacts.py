"""Files of finished jobs."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from store.tables.artifacts import Artifact


def list_artifacts(session: Session, job_id: str) -> Sequence[Artifact]:
    """All files of a job, by name."""
    return session.scalars(select(Artifact).where(Artifact.job_id == job_id).order_by(Artifact.name)).all()


def find_artifact(session: Session, job_id: str, name: str) -> Artifact | None:
    """The job's file of this name."""
    return session.get(Artifact, (job_id, name))
