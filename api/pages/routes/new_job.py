"""The form for a new job: filled in with references or uploads, checked, and sent."""

from collections.abc import Sequence
from typing import Any, get_args

from fastapi import APIRouter, BackgroundTasks, Depends, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from api.deps import ReadingDep, ResourcesDep, StorageDep
from api.errors import ApiError
from api.pages.columns import HEAD_BYTES, preview
from api.pages.context import PAGE_HEADERS, Pages
from api.pages.deps import FormDep, PagesDep, Visitor, VisitorDep, WriterDep, own_script
from api.pages.job_form import JobForm
from api.pages.once import key_of
from api.pages.posted_again import form_like
from api.resources import Resources
from api.routes.uploads import post_upload
from api.services import jobs, posting, uploads
from axformer.config import ABOUT_METHODS, ABOUT_PRESETS
from axformer.config.goals import ABOUT_GOALS
from axformer.data.columns import Columns
from axformer.repair.settings import FinetuneSettings
from axformer.wire.devices import Device
from axformer.wire.jobs import FormName, JobCreate
from axformer.wire.knob_list import list_knobs
from axformer.wire.knobs import KnobRead, KnobsRead
from axformer.wire.webhooks import ENDS, WebhookEvent
from store.errors import StorageError
from store.repositories.audit import note
from store.session import session_scope
from store.storage import upload_folder
from store.tables.jobs import Job

router = APIRouter()

UPLOADS = "/uploads"


@router.get("/new")
def show_form(visitor: WriterDep, session: ReadingDep, pages: PagesDep, like: str | None = None) -> Response:
    """The form: empty, or filled in like a job of the team."""
    if like is None:
        return _page(pages, visitor, JobForm())
    job = jobs.find(session, visitor.caller.team_id, like)
    form, left_out = form_like(job)
    return _page(pages, visitor, form, like=job, left_out=left_out)


@router.post("/new")
def send_form(
    visitor: WriterDep, sent: FormDep, pages: PagesDep, resources: ResourcesDep, after_commit: BackgroundTasks
) -> Response:
    """Check the form, or post the job."""
    form = JobForm.read(sent)
    body = form.body()
    if body is None:
        return _page(pages, visitor, form)
    try:
        if form.value("do") == "check":
            _check(resources, visitor, body)
            return _page(pages, visitor, form, is_checked=True)
        job_id = _post(resources, visitor, body, form.nonce)
    except ApiError as error:
        form.refuse(error)
        return _page(pages, visitor, form)
    after_commit.add_task(resources.wakeup.wake)
    return RedirectResponse(f"/jobs/{job_id}", 303, headers=PAGE_HEADERS)


@router.post(UPLOADS, dependencies=[Depends(own_script)])
async def send_file(request: Request, visitor: WriterDep, resources: ResourcesDep, response: Response) -> Response:
    """Receive a file that a script of the form sends."""
    stored = await post_upload(request, visitor.caller, resources, response)
    return JSONResponse(stored.model_dump(mode="json"), 201)


@router.get(UPLOADS + "/{upload_id}/columns")
def get_columns(upload_id: str, visitor: VisitorDep, session: ReadingDep, storage: StorageDep) -> Response:
    """Preview the columns of an uploaded data file; empty if they cannot be read."""
    upload = uploads.find(session, visitor.caller.team_id, upload_id)
    try:
        head = b"".join(storage.read(upload_folder(upload.id), upload.sha256, stop=min(HEAD_BYTES, upload.bytes)))
    except StorageError:
        head = b""
    seen = preview(upload.filename, head)
    return JSONResponse(seen.as_dict() if seen else None)


def _check(resources: Resources, visitor: Visitor, body: JobCreate) -> None:
    """Post the job and roll the transaction back."""
    with resources.sessions() as session:
        posting.submit(session, resources.settings, visitor.caller.team_id, body, None)
        session.rollback()


def _post(resources: Resources, visitor: Visitor, body: JobCreate, nonce: str) -> str:
    with session_scope(resources.sessions) as session:
        created = posting.submit(session, resources.settings, visitor.caller.team_id, body, key_of(nonce))
        if created.is_new:
            note(session, visitor.caller, "job.create", created.job.id)
        return created.job.id


_OF_METHODS: dict[tuple[str, ...], str] = {(method,): f"Of {about}" for method, about in ABOUT_METHODS.items()}
_OF_ALL, _OF_THE_PAPER = "Of every method", "Only to reproduce the paper's tables"


def _groups(listed: KnobsRead) -> dict[str, list[KnobRead]]:
    """The knobs by the title of their group."""
    groups: dict[str, list[KnobRead]] = {title: [] for title in (_OF_ALL, *_OF_METHODS.values(), _OF_THE_PAPER)}
    for knob in listed.knobs:
        title = _OF_THE_PAPER if knob.paper_only else _OF_METHODS.get(knob.methods, _OF_ALL)
        groups[title].append(knob)
    return groups


def _page(
    pages: Pages,
    visitor: Visitor,
    form: JobForm,
    *,
    is_checked: bool = False,
    like: Job | None = None,
    left_out: Sequence[str] = (),
) -> Response:
    listed = list_knobs()
    values: dict[str, Any] = {
        "form": form,
        "is_checked": is_checked,
        "like": like,
        "left_out": left_out,
        "knobs": listed,
        "knob_groups": _groups(listed).items(),
        "roles": list(Columns.model_fields),
        "devices": list(Device),
        "all_forms": get_args(FormName),
        "about_presets": ABOUT_PRESETS,
        "goals": {name.value: about for name, about in ABOUT_GOALS.items()},
        "finetune": FinetuneSettings.model_fields,
        "all_events": list(WebhookEvent),
        "usual_events": ENDS,
    }
    return pages.answer("new.html", status=422 if form.errors else 200, visitor=visitor, **values)
