"""``/v1/jobs/{id}/events``: the events of a job, in pages or live."""

from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.responses import Response, StreamingResponse

from api.deps import CallerDep, ReadingDep, ResourcesDep
from api.http.answers import choose
from api.http.paging import MOST_NUMBER, LimitDep
from api.openapi import answers
from api.services import event_stream, jobs
from api.views.jobs import fields_of
from api.views.rows import page_after
from axformer.wire.base import PageRead
from axformer.wire.events import EventRead
from store.repositories.events import events_after
from store.repositories.jobs import JobStanding
from store.states import TERMINAL

router = APIRouter(prefix="/jobs/{job_id}", tags=["events"])

_SSE = "text/event-stream"
_VARY = {"Vary": "Accept"}
_STREAMING = _VARY | {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # proxies shall pass it on at once
_ANSWERS = answers(200, "What happened, oldest first.", "events", 401, 404, 406, 422)
_ANSWERS[200]["content"] |= {_SSE: {"example": 'event: job.running\ndata: {"seq":4,"type":"job.running",…}\nid: 4\n\n'}}
_ANSWERS[204] = {"description": "The job has ended and its last event was seen; a stream need not be opened again."}


@router.get("/events", summary="Read the events of a job", response_model=PageRead[EventRead, int], responses=_ANSWERS)
def get_events(
    job_id: str,
    caller: CallerDep,
    session: ReadingDep,
    resources: ResourcesDep,
    limit: LimitDep,
    response: Response,
    after: Annotated[int, Query(ge=0, le=MOST_NUMBER, description="Number of the last event seen.")] = 0,
    last_event_id: Annotated[
        int | None, Header(ge=0, le=MOST_NUMBER, description="Where a stream goes on; wins over `after`.")
    ] = None,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> PageRead[EventRead, int] | Response:
    """Read events: a page of JSON, or with `Accept: text/event-stream` all of them and each new one until the job ends.

    During long phases a stream also has `job.progress` messages, whose `data` has a `message` and, while the job is running,
    `done`, `known` and `seconds_left`. They have no `id` and are not stored, so `Last-Event-ID` does not count them.
    """
    job = jobs.find(session, caller.team_id, job_id)
    if choose(accept, ("application/json", _SSE)) != _SSE:
        response.headers.update(_VARY)
        page = events_after(session, job.id, after=after, limit=limit.page)
        return page_after([fields_of(EventRead, event) for event in page.items], after, has_more=page.has_more)
    begin = after if last_event_id is None else last_event_id
    if last_event_id is not None and job.state in TERMINAL and begin >= job.event_count:
        return Response(status_code=204, headers=_VARY)  # the one answer after which browsers do not connect again
    events = event_stream.stream(resources, caller.key_id, job.id, begin, JobStanding(job.state, job.event_count))
    return StreamingResponse(events, media_type=_SSE, headers=_STREAMING)
