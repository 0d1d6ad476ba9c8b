"""Files that teams have sent."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from store.tables.uploads import Upload


def add_upload(session: Session, upload: Upload) -> Upload:
    """Note a file whose content is already in the storage."""
    session.add(upload)
    session.flush()
    return upload


def find_upload(session: Session, upload_id: str, team_id: str) -> Upload | None:
    """The team's upload with this id; null also where it is another team's."""
    return session.scalars(select(Upload).where(Upload.id == upload_id, Upload.team_id == team_id)).one_or_none()


def delete_upload(session: Session, upload: Upload) -> None:
    """Forget an upload; the caller removes its content after the commit."""
    session.delete(upload)
    session.flush()
