"""``/v1/jobs/{id}/trace``: the trials of a pass, in pages while it runs, or complete in the format of your tools."""

from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.responses import Response, StreamingResponse

from api.deps import CallerDep, ReadingDep, ResourcesDep
from api.http.answers import as_json, choose
from api.http.downloads import attachment
from api.http.paging import MOST_NUMBER, LimitDep
from api.openapi import answers
from api.resources import Resources
from api.services import jobs, trace_formats
from api.services.trace_formats import CSV, JSON, NDJSON, SUFFIXES, WRITERS
from api.views.rows import page_after
from axformer.plan.trial import Trial
from axformer.wire.base import PageRead
from store.repositories.keys import Caller
from store.repositories.trials import BEFORE_FIRST, trials_after

router = APIRouter(prefix="/jobs/{job_id}", tags=["trace"])

_VARY = {"Vary": "Accept"}
_FORMATS = (JSON, *WRITERS)
_ANSWERS = answers(200, "The trials, in order.", "trace", 401, 404, 406, 422)
_ANSWERS[200]["content"] |= {
    NDJSON: {"example": '{"seq":0,"phase":"base",…}\n'},
    CSV: {"example": "seq,phase,element,loss,…\n"},
}


@router.get("/trace", summary="Read the trace of a job", response_model=PageRead[Trial, int], responses=_ANSWERS)
def get_trace(
    job_id: str,
    caller: CallerDep,
    session: ReadingDep,
    resources: ResourcesDep,
    limit: LimitDep,
    after: Annotated[
        int, Query(ge=BEFORE_FIRST, le=MOST_NUMBER, description="Number of the last trial seen.")
    ] = BEFORE_FIRST,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Response:
    """Read the trace: a page of JSON, or everything after `after` as NDJSON or CSV, by the `Accept` header.

    NDJSON is, line for line, the artifact's `trace.jsonl`.
    """
    job = jobs.find(session, caller.team_id, job_id)
    media_type = choose(accept, _FORMATS)
    if media_type != JSON:
        return whole_trace(resources, caller, job.id, media_type, after, limit.asked)
    page = trials_after(session, job.id, after=after, limit=limit.page)
    return as_json(page_after(page.items, after, has_more=page.has_more), _VARY)


def whole_trace(
    resources: Resources,
    caller: Caller,
    job_id: str,
    media_type: str,
    after: int = BEFORE_FIRST,
    limit: int | None = None,
) -> StreamingResponse:
    """The trials of a job above ``after``, at most ``limit`` of them, as a file of one of ``WRITERS``."""
    trials = trace_formats.stream(
        *(resources.reading_sessions, caller, job_id), after=after, limit=limit, chunk=resources.settings.trace_chunk
    )
    headers = _VARY | {"Content-Disposition": attachment(f"{job_id}-trace.{SUFFIXES[media_type]}")}
    return StreamingResponse(WRITERS[media_type](trials), media_type=media_type, headers=headers)
