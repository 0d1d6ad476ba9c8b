"""The files of finished jobs, for the team they belong to."""

from collections.abc import Iterator, Sequence

import structlog
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.errors import NoSuchObjectError
from api.http.downloads import Download
from api.services import jobs
from store.errors import StorageError, StoreError
from store.repositories import files as repository
from store.repositories.audit import count_download
from store.repositories.keys import Caller
from store.storage.storage import Storage, job_folder
from store.tables.files import Artifact
from store.tables.jobs import Job


def list_artifacts(session: Session, team_id: str, job_id: str) -> Sequence[Artifact]:
    """All files of the team's job, by name.

    Raises:
        NoSuchObjectError: the team has no such job.
    """
    return repository.list_artifacts(session, jobs.find(session, team_id, job_id).id)


def download(
    session: Session, storage: Storage, team_id: str, job_id: str, name: str, *, address_seconds: int | None = None
) -> Download:
    """One file, ready to be read; with ``address_seconds``, from the storage itself too, where it has addresses.

    Raises:
        NoSuchObjectError: the team has no such job, or the job no such file.
    """
    job = jobs.find(session, team_id, job_id)
    artifact = repository.find_artifact(session, job.id, name) if name.isprintable() else None
    if artifact is None:
        reason = _without(job)
        raise NoSuchObjectError(f"'{name}' is not there: job {job_id} {reason}", code="artifact_not_found")

    def read(start: int, stop: int) -> Iterator[bytes]:
        try:
            return storage.read(job_folder(job.id), artifact.sha256, start=start, stop=stop)
        except StorageError as error:
            raise NoSuchObjectError(f"'{name}' of job {job_id} is lost: {error}", code="content_missing") from None

    address = None
    if address_seconds is not None:
        folder, base = job_folder(job.id), artifact.name.rpartition("/")[2]
        address = storage.address(
            folder, artifact.sha256, name=base, media_type=artifact.media_type, seconds=address_seconds
        )
    return Download(artifact.name, artifact.media_type, artifact.sha256, artifact.bytes, read, address)


def counted(session: Session, caller: Caller, content: str, answer: Response) -> Response:
    """The answer, about whose content the audit log is told, unless there is none in it."""
    if answer.status_code in (200, 206, 307):
        count_download(session, caller, content)
    return answer


def _without(job: Job) -> str:
    """Why a job does not have a file."""
    return "has no file of this name" if job.summary else f"is {job.state}; files come when it has succeeded"


_LOG = structlog.get_logger(__name__)


def discard(storage: Storage, folder: str) -> None:
    """Remove a folder of the storage. A failure is logged for the operator, since the request is done."""
    try:
        storage.delete(folder)
    except (StoreError, OSError) as error:
        _LOG.error("files_left_behind", folder=folder, reason=str(error))
