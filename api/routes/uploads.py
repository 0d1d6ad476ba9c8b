"""``/v1/uploads``: files that jobs name as ``upload:<id>``."""

from collections.abc import Iterator

import anyio.from_thread
import anyio.to_thread
from fastapi import APIRouter, BackgroundTasks, Request, Response

from api.deps import CallerDep, ReadingDep, ResourcesDep, SessionDep, StorageDep, WriterDep
from api.errors import BodyTooLargeError
from api.http.multipart import FIELD, FilePart, paced
from api.openapi import answers
from api.resources import Resources
from api.services import uploads
from api.services.artifacts import discard
from api.services.quotas import no_room_for_upload, room_for_upload
from api.views.rows import upload_read
from axformer.wire.artifacts import UploadRead
from store.errors import TooLargeError as StoredTooLargeError
from store.ids import UPLOAD_PREFIX, new_id
from store.repositories.audit import note
from store.repositories.keys import Caller
from store.session import session_scope
from store.storage.storage import upload_folder

router = APIRouter(prefix="/uploads", tags=["uploads"])

PATH = "/v1/uploads"
_FRAMING = 64 * 2**10  # bytes that a form adds to its file: boundaries and headers
_FORM = {
    "type": "object",
    "required": [FIELD],
    "additionalProperties": False,
    "properties": {FIELD: {"type": "string", "format": "binary"}},
}
_BODY = {"required": True, "content": {"multipart/form-data": {"schema": _FORM, "example": {FIELD: "(bytes)"}}}}


@router.post(
    "",
    summary="Send a file",
    status_code=201,
    responses=answers(201, "The file is stored.", "upload", 400, 401, 408, 409, 413, 415, 422),
    openapi_extra={"requestBody": _BODY},
)
async def post_upload(request: Request, caller: WriterDep, resources: ResourcesDep, response: Response) -> UploadRead:
    """Send a file: `curl -F file=@model.tar.gz`. A checkpoint is an archive of its files, data one file.

    The suffix determines how the file is read: `.tar.gz`, `.tar`, `.zip` for a checkpoint; `.jsonl`, `.json`, `.csv`, `.tsv`,
    `.parquet` for data.
    """
    _check_declared_size(request, resources)
    settings = resources.settings
    body = paced(request.stream(), settings.upload_slowest, settings.upload_pace_seconds)
    part = FilePart(request.headers.get("content-type"), body)
    # A separate thread limit: a slow sender holds a thread for as long as it sends.
    with resources.upload_places.taken(caller.team_id):
        uploaded = await anyio.to_thread.run_sync(_receive, part, caller, resources, limiter=resources.upload_limiter)
    response.headers["Location"] = f"{PATH}/{uploaded.id}"
    return uploaded


@router.get("/{upload_id}", summary="Look at an upload", responses=answers(200, "The upload.", "upload", 401, 404))
def get_upload(upload_id: str, caller: CallerDep, session: ReadingDep) -> UploadRead:
    """Look at an upload."""
    return upload_read(uploads.find(session, caller.team_id, upload_id))


@router.delete(
    "/{upload_id}",
    summary="Delete an upload",
    status_code=204,
    responses=answers(204, "The upload is gone.", None, 401, 404, 409),
)
def delete_upload(
    upload_id: str, caller: WriterDep, session: SessionDep, storage: StorageDep, after_commit: BackgroundTasks
) -> None:
    """Delete an upload that no unfinished job needs."""
    uploads.delete(session, caller.team_id, upload_id)
    note(session, caller, "upload.delete", upload_id)
    after_commit.add_task(discard, storage, upload_folder(upload_id))


def _check_declared_size(request: Request, resources: Resources) -> None:
    most = resources.settings.upload_max_bytes
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most + _FRAMING:
        raise _too_large(most)


def _receive(part: FilePart, caller: Caller, resources: Resources) -> UploadRead:
    """Store the file and add its row; runs in a worker thread."""
    team_id, upload_id, most = caller.team_id, new_id(UPLOAD_PREFIX), resources.settings.upload_max_bytes
    folder = upload_folder(upload_id)
    with session_scope(resources.sessions) as session:
        room = room_for_upload(session, team_id)
    try:
        stored = resources.storage.put(folder, _chunks(part), max_bytes=most if room is None else min(most, room))
    except StoredTooLargeError:
        if room is None or room >= most:
            raise _too_large(most) from None
        with session_scope(resources.sessions) as session:
            raise no_room_for_upload(session, team_id) from None
    try:
        with session_scope(resources.sessions) as session:
            upload = uploads.record(session, team_id, upload_id, part.filename, stored)
            note(session, caller, "upload.create", upload_id)
            return upload_read(upload)
    except BaseException:
        discard(resources.storage, folder)
        raise


def _chunks(part: FilePart) -> Iterator[bytes]:
    while chunk := anyio.from_thread.run(part.next_chunk):
        yield chunk


def _too_large(most: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"the file is larger than the {most} bytes an upload may have; give a URL instead")
