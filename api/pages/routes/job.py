"""One job: how its pass goes, what is left of the model, what happened, and its files."""

import asyncio
import time
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic_core import to_json
from sqlalchemy.orm import Session
from starlette.responses import Response

from api import downloads
from api.deps import ReadingDep, ResourcesDep, StorageDep
from api.pages import stream
from api.pages.context import Pages
from api.pages.deps import PagesDep, Visitor, VisitorDep, still_valid
from api.pages.job_parts import job_values, map_values
from api.pages.stream import Look, Wait
from api.paging import MOST_NUMBER
from api.resources import Resources
from api.services import artifacts, jobs
from store.repositories.jobs import Standing
from store.repositories.trace_views import points_after
from store.repositories.trials import BEFORE_FIRST
from store.session import session_scope
from store.states import TERMINAL

router = APIRouter(prefix="/jobs/{job_id}")

MOST_MARKS = 4000
"""Rejected trials in a chart; more than three for each of its pixels across would cover each other."""
_PARTS = ("summary", "result", "log")


@router.get("")
def show_job(
    job_id: str, visitor: VisitorDep, session: ReadingDep, resources: ResourcesDep, pages: PagesDep
) -> Response:
    """The page."""
    job = jobs.find(session, visitor.caller.team_id, job_id)
    values = job_values(session, resources, visitor.caller, job) | map_values(session, job)
    return pages.answer("job.html", visitor=visitor, tab="overview", **values)


@router.get("/settings")
def show_settings(
    job_id: str, visitor: VisitorDep, session: ReadingDep, resources: ResourcesDep, pages: PagesDep
) -> Response:
    """Everything that the job was told."""
    job = jobs.find(session, visitor.caller.team_id, job_id)
    return pages.answer(
        "job_settings.html", visitor=visitor, tab="settings", **job_values(session, resources, visitor.caller, job)
    )


@router.get("/live")
def stream_job(
    job_id: str, visitor: VisitorDep, session: ReadingDep, resources: ResourcesDep, pages: PagesDep
) -> Response:
    """What changes on the page, until the job has ended."""
    job = jobs.find(session, visitor.caller.team_id, job_id)
    watched = [job.id, *(one.id for one in jobs.passes(session, [job]).get(job.id, ()))]
    return stream.answer(resources, lambda: _look(resources, pages, visitor, job_id), _news_of(resources, watched))


@router.get("/points")
def get_points(
    job_id: str,
    visitor: VisitorDep,
    session: ReadingDep,
    after: Annotated[int, Query(ge=BEFORE_FIRST, le=MOST_NUMBER)] = BEFORE_FIRST,
) -> Response:
    """The marks of the chart from a trial on; a loss that is no number is null."""
    job = jobs.find(session, visitor.caller.team_id, job_id)
    points, step = points_after(session, job.id, after=after, most=MOST_MARKS)
    # Plain tuples, written in one go: a chart has some thousand marks.
    content = to_json({"points": [tuple(point) for point in points], "step": step}, inf_nan_mode="null")
    return Response(content, media_type="application/json")


@router.get("/files/{name:path}")
def get_file(
    job_id: str, name: str, request: Request, visitor: VisitorDep, session: ReadingDep, storage: StorageDep
) -> Response:
    """Download a file."""
    found = artifacts.download(session, storage, visitor.caller.team_id, job_id, name)
    return downloads.answer(found, method=request.method, headers=request.headers)


def _look(resources: Resources, pages: Pages, visitor: Visitor, job_id: str) -> Look | None:
    if not still_valid(resources, visitor):
        return None
    with session_scope(resources.reading_sessions) as session:
        return _parts(session, resources, pages, visitor, job_id)


def _parts(session: Session, resources: Resources, pages: Pages, visitor: Visitor, job_id: str) -> Look:
    job = jobs.find(session, visitor.caller.team_id, job_id)
    values = job_values(session, resources, visitor.caller, job) | map_values(session, job) | {"visitor": visitor}
    parts = {name: pages.text(f"job/{name}.html", **values) for name in (*_PARTS, "map")}
    return Look(parts, is_last=job.state in TERMINAL)


def _news_of(resources: Resources, job_ids: list[str]) -> Wait:
    """Wait until there is news of one of these jobs, but no longer than a connection may be silent."""
    last: list[Standing | None] = []

    async def wait() -> None:
        nonlocal last
        until = time.monotonic() + resources.settings.event_heartbeat_seconds
        while not resources.is_stopping and time.monotonic() < until:
            now = await asyncio.gather(*(resources.standings.next(one) for one in job_ids))
            if now != last:
                last = now
                return

    return wait
