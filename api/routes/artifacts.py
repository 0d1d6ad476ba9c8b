"""``/v1/jobs/{id}/artifacts``: the files of a finished job, with ranges and strong ETags."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from api.deps import CallerDep, ReadingDep, SettingsDep, StorageDep
from api.http import downloads
from api.openapi import answers
from api.services import artifacts
from api.views.rows import artifact_read
from axformer.wire.artifacts import ArtifactList

router = APIRouter(prefix="/jobs/{job_id}/artifacts", tags=["artifacts"])

_BINARY = "application/octet-stream"
_FILE = answers(200, "The file.", None, 401, 404, 416)
_FILE[200]["content"] = {_BINARY: {"schema": {"type": "string", "format": "binary"}, "example": "(bytes)"}}
_FILE[206] = {"description": "The part that `Range` asked for."}
_FILE[307] = {"description": "An address of the storage, valid for a short while, where the operator wants that."}
_FILE[304] = {"description": "`If-None-Match` names the content that is there."}
_HEAD = answers(200, "The file's headers.", None, 401, 404) | {304: _FILE[304]}


@router.get("", summary="List the files of a job", responses=answers(200, "The files, by name.", "artifacts", 401, 404))
def list_artifacts(job_id: str, caller: CallerDep, session: ReadingDep) -> ArtifactList:
    """List the files of a job; there are none before it has succeeded."""
    found = artifacts.list_artifacts(session, caller.team_id, job_id)
    return ArtifactList(data=[artifact_read(artifact) for artifact in found])


@router.head("/{name:path}", summary="See a file's size and digest", response_class=Response, responses=_HEAD)
def head_artifact(
    job_id: str, name: str, request: Request, caller: CallerDep, session: ReadingDep, storage: StorageDep
) -> Response:
    """See a file's size, digest and ETag."""
    found = artifacts.download(session, storage, caller.team_id, job_id, name)
    return downloads.answer(found, method=request.method, headers=request.headers)


@router.get("/{name:path}", summary="Download a file", response_class=Response, responses=_FILE)
def get_artifact(
    job_id: str,
    name: str,
    request: Request,
    caller: CallerDep,
    session: ReadingDep,
    storage: StorageDep,
    settings: SettingsDep,
) -> Response:
    """Download a file or a part of it. The ETag is its SHA-256: `If-Range` continues an interrupted download."""
    seconds = settings.object_store.address_seconds
    found = artifacts.download(session, storage, caller.team_id, job_id, name, address_seconds=seconds)
    answer = downloads.answer(found, method=request.method, headers=request.headers)
    return artifacts.counted(session, caller, f"{job_id}/{name}", answer)
