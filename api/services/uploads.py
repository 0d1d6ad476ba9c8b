"""What teams may do with their files: send, look up, delete."""

from sqlalchemy.exc import NoResultFound
from sqlalchemy.orm import Session

from api.errors import NoSuchObjectError, WrongStateError
from api.services.quotas import check_stored
from store.repositories import files as repository
from store.storage.content import Stored
from store.tables.files import Upload


def record(session: Session, team_id: str, upload_id: str, filename: str, stored: Stored) -> Upload:
    """Add the row of a file whose content is stored.

    Raises:
        WrongStateError: the team would store more than it may.
    """
    upload = Upload(id=upload_id, team_id=team_id, filename=filename, sha256=stored.sha256, bytes=stored.bytes)
    repository.add_upload(session, upload)
    check_stored(session, team_id, upload.bytes)
    return upload


def find(session: Session, team_id: str, upload_id: str) -> Upload:
    """The team's upload with this id.

    Raises:
        NoSuchObjectError: the team has none.
    """
    upload = repository.find_upload(session, upload_id, team_id) if upload_id.isprintable() else None
    if upload is None:
        raise _no_upload(upload_id)
    return upload


def delete(session: Session, team_id: str, upload_id: str) -> None:
    """Remove the row of an upload; the caller removes its content after the commit.

    Raises:
        NoSuchObjectError: the team has none.
        WrongStateError: a job that has not ended needs it.
    """
    upload = find(session, team_id, upload_id)
    try:
        repository.lock_upload(session, upload)
    except NoResultFound:  # deleted at the same time
        raise _no_upload(upload_id) from None
    users = repository.unfinished_jobs_with(session, upload)
    if users:
        detail = f"upload {upload_id} is needed by {', '.join(users)}; cancel or wait for them first"
        raise WrongStateError(detail, code="upload_in_use")
    repository.delete_upload(session, upload)


def _no_upload(upload_id: str) -> NoSuchObjectError:
    return NoSuchObjectError(f"your team has no upload '{upload_id}'", code="upload_not_found")
