"""Files: what jobs have made, and what teams have uploaded."""

from collections.abc import Sequence

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from store.states import TERMINAL
from store.tables.files import Artifact, Upload
from store.tables.jobs import REFERENCES, Job


def list_artifacts(session: Session, job_id: str) -> Sequence[Artifact]:
    """All files of a job, by name."""
    return session.scalars(select(Artifact).where(Artifact.job_id == job_id).order_by(Artifact.name)).all()


def find_artifact(session: Session, job_id: str, name: str) -> Artifact | None:
    """The job's file of this name."""
    return session.get(Artifact, (job_id, name))


def add_upload(session: Session, upload: Upload) -> Upload:
    """Add the row of a file whose content is already stored."""
    session.add(upload)
    session.flush()
    return upload


def find_upload(session: Session, upload_id: str, team_id: str) -> Upload | None:
    """The team's upload with this id; None also if it is another team's."""
    return session.scalars(select(Upload).where(Upload.id == upload_id, Upload.team_id == team_id)).one_or_none()


def hold_upload(session: Session, upload_id: str, team_id: str) -> Upload | None:
    """The team's upload with this id, locked against deletion until the transaction ends, so that a job can name it."""
    query = select(Upload).where(Upload.id == upload_id, Upload.team_id == team_id)
    return session.scalars(query.with_for_update(read=True, key_share=True)).one_or_none()


def lock_upload(session: Session, upload: Upload) -> None:
    """Lock the upload so that no job can name it until the transaction ends; others wait.

    Raises:
        sqlalchemy.exc.NoResultFound: it is gone.
    """
    session.scalars(select(Upload.id).where(Upload.id == upload.id).with_for_update()).one()


def delete_upload(session: Session, upload: Upload) -> None:
    """Remove the row of an upload; the caller removes its content after the commit."""
    session.delete(upload)
    session.flush()


def unfinished_jobs_with(session: Session, upload: Upload) -> Sequence[str]:
    """Ids of the team's jobs that have not ended and name the upload, oldest first."""
    uri = f"upload:{upload.id}"
    names = or_(*(reference == uri for reference in REFERENCES))
    query = select(Job.id).where(Job.team_id == upload.team_id, Job.state.not_in(TERMINAL), names)
    return session.scalars(query.order_by(Job.created_at, Job.id)).all()
