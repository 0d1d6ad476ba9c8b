"""The page of a job: the progress of its pass, what is left of the model, its events, and its files; and the actions on it, the
same as in the API, recorded in the same log."""

import time

from fastapi import APIRouter, BackgroundTasks, Request
from sqlalchemy.orm import Session
from starlette.responses import RedirectResponse, Response, StreamingResponse

from api.deps import ReadingDep, ResourcesDep, SessionDep, StorageDep
from api.errors import NoSuchObjectError
from api.http import downloads
from api.http.downloads import attachment, tar_of
from api.pages import stream
from api.pages.context import PAGE_HEADERS, Pages
from api.pages.deps import FormDep, PagesDep, Visitor, VisitorDep, WriterDep, still_valid
from api.pages.job_parts import ANALYSIS, REPORT, bundles_of, job_values, label_values
from api.pages.pictures import PLACE, WidthQuery, chart_of, fragment, holds_plans, map_of
from api.pages.stream import PageState, Wait
from api.resources import Resources
from api.services import artifacts, jobs, steering
from api.services.artifacts import discard
from api.services.inputs.look import names_of
from axformer.config import changed_knobs
from axformer.wire.run import DATA
from axformer.wire.states import JobKind
from store.errors import StorageError
from store.repositories.jobs import JobStanding
from store.repositories.trace_views import trace_totals
from store.session import session_scope
from store.states import TERMINAL
from store.storage.storage import job_folder

router = APIRouter(prefix="/jobs/{job_id}")

REPORT_HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Content-Disposition": "inline",
    "Content-Type": "text/html; charset=utf-8",
}
"""A report is content of the job: it is shown with an origin of its own, so that it could do nothing in the visitor's name."""
MOST_DRAWN = 50_000
"""Trials whose pictures are drawn into the page: of 300,000 they take a second, so a script asks for them, both at a time."""
_TITLES = {"checkpoint": "Checkpoint", **DATA, "against": "Other model"}
_PARTS = ("summary", "result", "process", "files", "log", "end")


@router.get("")
def show_job(
    job_id: str, visitor: VisitorDep, session: ReadingDep, resources: ResourcesDep, pages: PagesDep
) -> Response:
    """The page."""
    job = jobs.find(session, visitor.caller.team_id, job_id)
    values = job_values(session, resources, visitor.caller, job) | label_values(session, resources, job)
    if job.kind is not JobKind.ANALYSIS:
        is_long = values["totals"].trials > MOST_DRAWN
        values |= {"holds_plans": holds_plans(job), "is_long": is_long}
        values["chart"] = None if is_long else chart_of(session, job, values["totals"])
        values["map"] = None if is_long else map_of(session, job)
    return pages.answer("job.html", visitor=visitor, tab="overview", **values)


@router.get("/settings")
def show_settings(
    job_id: str, visitor: VisitorDep, session: ReadingDep, resources: ResourcesDep, storage: StorageDep, pages: PagesDep
) -> Response:
    """All settings of the job, those that differ from its preset first."""
    job = jobs.find(session, visitor.caller.team_id, job_id)
    uris = {name: one["uri"] for name, one in job.sources.items()}
    return pages.answer(
        "job_settings.html",
        visitor=visitor,
        tab="settings",
        names=names_of(session, storage, resources.settings, visitor.caller.team_id, uris),
        titles=_TITLES,
        changed=changed_knobs(job.spec.get("preset", ""), job.config),
        **job_values(session, resources, visitor.caller, job),
    )


@router.get("/live")
def stream_job(
    job_id: str, visitor: VisitorDep, session: ReadingDep, resources: ResourcesDep, pages: PagesDep
) -> Response:
    """Stream the changes of the page until the job has ended, without the pictures, which scripts fetch."""
    job = jobs.find(session, visitor.caller.team_id, job_id)
    return stream.answer(resources, lambda: _look(resources, pages, visitor, job_id), _news_of(resources, job.id))


@router.get("/chart")
def get_chart(job_id: str, visitor: VisitorDep, session: ReadingDep, width: WidthQuery = PLACE) -> Response:
    """The loss of every trial so far, or what the speed of every model so far costs."""
    job = jobs.find(session, visitor.caller.team_id, job_id)
    return fragment(chart_of(session, job, trace_totals(session, job.id), width))


@router.get("/map")
def get_map(job_id: str, visitor: VisitorDep, session: ReadingDep, width: WidthQuery = PLACE) -> Response:
    """The map of the model's elements so far."""
    return fragment(map_of(session, jobs.find(session, visitor.caller.team_id, job_id), width))


@router.get("/files/{name:path}")
def get_file(
    job_id: str, name: str, request: Request, visitor: VisitorDep, session: ReadingDep, storage: StorageDep
) -> Response:
    """Download a file."""
    found = artifacts.download(session, storage, visitor.caller.team_id, job_id, name)
    answer = downloads.answer(found, method=request.method, headers=request.headers)
    return artifacts.counted(session, visitor.caller, f"{job_id}/{name}", answer)


@router.get("/forms/{name}")
def get_form(job_id: str, name: str, visitor: VisitorDep, session: ReadingDep, storage: StorageDep) -> Response:
    """Download all files of a form as one archive."""
    job = jobs.find(session, visitor.caller.team_id, job_id)
    bundles = bundles_of(artifacts.list_artifacts(session, visitor.caller.team_id, job_id))
    form = next((form for form in bundles.forms if form.name == name), None)
    if form is None:
        raise NoSuchObjectError(f"job {job_id} has no files of a form '{name}'", code="artifact_not_found")
    try:
        packed = tar_of(form.files, storage, job_folder(job.id))
    except StorageError as error:
        raise NoSuchObjectError(f"a file of {form.directory}/ is lost: {error}", code="content_missing") from None
    described = {"Content-Length": str(packed.size), "Content-Disposition": attachment(f"{job.id}-{name}.tar")}
    answer = StreamingResponse(packed.content, media_type="application/x-tar", headers=described)
    return artifacts.counted(session, visitor.caller, f"{job_id}/{form.directory}/", answer)


@router.get("/report")
@router.get("/analysis")
def show_report(
    job_id: str, request: Request, visitor: VisitorDep, session: ReadingDep, storage: StorageDep
) -> Response:
    """The report, or an analysis, as a page, which may run nothing and load nothing."""
    name = ANALYSIS if request.url.path.endswith("/analysis") else REPORT
    found = artifacts.download(session, storage, visitor.caller.team_id, job_id, name)
    answer = downloads.answer(found, method=request.method, headers=request.headers)
    answer.headers.update(REPORT_HEADERS)
    return artifacts.counted(session, visitor.caller, f"{job_id}/{name}", answer)


@router.post("/cancel")
@router.post("/pause")
@router.post("/resume")
@router.post("/retry")
@router.post("/delete")
def steer(
    job_id: str,
    request: Request,
    visitor: WriterDep,
    _: FormDep,
    session: SessionDep,
    storage: StorageDep,
    resources: ResourcesDep,
    after_commit: BackgroundTasks,
) -> Response:
    """Do what the button says: cancel a job, pause it, queue it again with its trace or from scratch, or delete it."""
    caller, leads_to = visitor.caller, f"/jobs/{job_id}"
    match request.url.path.rpartition("/")[2]:
        case "cancel":
            steering.cancel(session, caller, job_id)
        case "pause":
            steering.pause(session, caller, job_id)
        case "resume":
            steering.resume(session, caller, job_id)
            after_commit.add_task(resources.wakeup.wake)
        case "retry":
            steering.retry(session, storage, caller, job_id)
            after_commit.add_task(resources.wakeup.wake)
        case "delete":
            steering.delete(session, caller, job_id)
            after_commit.add_task(discard, storage, job_folder(job_id))
            leads_to = "/"
    return RedirectResponse(leads_to, 303, headers=PAGE_HEADERS)


def _look(resources: Resources, pages: Pages, visitor: Visitor, job_id: str) -> PageState | None:
    if not still_valid(resources, visitor):
        return None
    with session_scope(resources.reading_sessions) as session:
        return _parts(session, resources, pages, visitor, job_id)


def _parts(session: Session, resources: Resources, pages: Pages, visitor: Visitor, job_id: str) -> PageState:
    job = jobs.find(session, visitor.caller.team_id, job_id)
    values = job_values(session, resources, visitor.caller, job) | label_values(session, resources, job)
    values["visitor"] = visitor
    parts = {name: pages.text(f"job/{name}.html", **values) for name in _PARTS}
    return PageState(parts, is_last=job.state in TERMINAL)


def _news_of(resources: Resources, job_id: str) -> Wait:
    """Wait for news of a job, but no longer than a connection may be silent."""
    last: JobStanding | None = None

    async def wait() -> None:
        nonlocal last
        until = time.monotonic() + resources.settings.event_heartbeat_seconds
        while not resources.is_stopping and time.monotonic() < until:
            now = await resources.standings.next(job_id)
            if now != last:
                last = now
                return

    return wait
