"""The form for a new job: filled in with references or uploads, checked, and sent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from fastapi import APIRouter, BackgroundTasks, Depends, Request
from sqlalchemy.orm import Session
from starlette.responses import JSONResponse, RedirectResponse, Response

from api.deps import ReadingDep, ResourcesDep, StorageDep
from api.errors import ApiError
from api.pages.columns import preview
from api.pages.context import PAGE_HEADERS, Pages
from api.pages.deps import FormDep, PagesDep, Visitor, VisitorDep, WriterDep, own_script
from api.pages.formats import figure
from api.pages.job_form import INPUT_CHOICES, REFERENCES, JobForm, demo_form, key_of
from api.pages.posted_again import form_like
from api.resources import Resources
from api.routes.uploads import post_upload
from api.services import jobs, posting
from api.services.inputs.checkpoint import look_at_checkpoint
from api.services.inputs.contents import Contents, UnreadableError, found_by
from api.services.inputs.look import Seen, look_at_inputs, names_of
from axformer.config import ABOUT_PRESETS, METHODS, Preset, make_config
from axformer.config.goals import ABOUT_GOALS, GoalName, config_for, parse_goal, written
from axformer.wire.finetuning import FinetuneSettings
from axformer.wire.heads import HEAD_TASKS
from axformer.wire.jobs import JobCreate
from axformer.wire.knob_list import KnobRead, KnobsRead, list_knobs
from axformer.wire.run import DATA, FORMS, Run
from axformer.wire.webhooks import ENDS, WebhookEvent
from store.repositories.audit import note
from store.repositories.jobs import Created
from store.session import session_scope
from store.settings import Settings
from store.storage.storage import Storage
from store.tables.jobs import Job, work_of

router = APIRouter()

UPLOADS = "/uploads"
Body = TypeVar("Body")
Submit = Callable[[Session, Settings, str, Body, str | None], Created]


@router.get("/new")
def show_form(
    visitor: WriterDep,
    session: ReadingDep,
    resources: ResourcesDep,
    storage: StorageDep,
    pages: PagesDep,
    like: str | None = None,
    demo: bool = False,
) -> Response:
    """The form: empty, or filled in like a job of the team, or with the demo's model and data."""
    if like is None:
        form = (demo_form(resources.settings) if demo else None) or JobForm()
        return _page(pages, visitor, form, names=names_in(form, REFERENCES, resources, storage, visitor))
    job = jobs.find(session, visitor.caller.team_id, like)
    form, left_out = form_like(job)
    return _page(
        pages, visitor, form, like=job, left_out=left_out, names=names_in(form, REFERENCES, resources, storage, visitor)
    )


@router.post("/new")
def send_form(
    visitor: WriterDep,
    sent: FormDep,
    pages: PagesDep,
    resources: ResourcesDep,
    storage: StorageDep,
    after_commit: BackgroundTasks,
) -> Response:
    """Check the form, or post the job."""
    form = JobForm.read(sent)
    body, names = form.body(), names_in(form, REFERENCES, resources, storage, visitor)
    if body is None:
        return _page(pages, visitor, form, names=names)
    try:
        if form.value("do") == "check":
            return _page(pages, visitor, form, names=names, checked=_check(resources, storage, visitor, body))
        job_id = post(posting.submit, body, form.nonce, resources, visitor)
    except ApiError as error:
        form.refuse(error)
        return _page(pages, visitor, form, names=names)
    after_commit.add_task(resources.wakeup.wake)
    return RedirectResponse(f"/jobs/{job_id}", 303, headers=PAGE_HEADERS)


@router.post(UPLOADS, dependencies=[Depends(own_script)])
async def send_file(request: Request, visitor: WriterDep, resources: ResourcesDep, response: Response) -> Response:
    """Receive a file that a script of the form sends."""
    stored = await post_upload(request, visitor.caller, resources, response)
    return JSONResponse(stored.model_dump(mode="json"), 201)


@router.get(UPLOADS + "/{upload_id}/columns")
def get_columns(upload_id: str, visitor: VisitorDep, storage: StorageDep, resources: ResourcesDep) -> Response:
    """Preview the columns of an uploaded data file; empty if they cannot be read."""
    contents = Contents(found_by(resources.reading_sessions, visitor.caller.team_id), storage, resources.settings)
    with (
        contents.open(f"upload:{upload_id}", is_checkpoint=False) as content,
        resources.looks.taken(visitor.caller.team_id),
    ):
        seen = preview(content)
    return JSONResponse(asdict(seen) if seen else None)


@router.get(UPLOADS + "/{upload_id}/model")
def get_model(upload_id: str, visitor: VisitorDep, storage: StorageDep, resources: ResourcesDep) -> Response:
    """What an uploaded checkpoint is, or why a worker would stop at it, and which task's columns its data has."""
    find = found_by(resources.reading_sessions, visitor.caller.team_id)
    find(upload_id)
    try:
        with resources.looks.taken(visitor.caller.team_id):
            model = look_at_checkpoint(Contents(find, storage, resources.settings), f"upload:{upload_id}")
    except UnreadableError as error:
        return JSONResponse({"words": str(error), "columns": None})
    return JSONResponse({"words": model.words, "columns": None if model.task is None else " ".join(model.task.columns)})


@dataclass(frozen=True)
class CheckedJob:
    """What a check has found; the service would accept the job."""

    inputs: Sequence[Seen]
    seconds: float | None
    """How long the last jobs with this method took a worker; None if there were none."""

    @property
    def is_wrong(self) -> bool:
        """Whether a worker would stop at an input."""
        return any(one.is_wrong for one in self.inputs)


def _check(resources: Resources, storage: Storage, visitor: Visitor, body: JobCreate) -> CheckedJob:
    """Post the job and roll the transaction back; then look at its inputs."""
    team_id = visitor.caller.team_id
    with resources.sessions() as session:
        job = posting.submit(session, resources.settings, team_id, body, None).job
        config, work = job.config, work_of(job)
        session.rollback()
    with resources.looks.taken(team_id):
        inputs = look_at_inputs(resources.reading_sessions, storage, resources.settings, team_id, body, config)
    return CheckedJob(inputs, resources.queue_views.get().typical.get(work))


def names_in(
    form: JobForm, parts: Sequence[str], resources: Resources, storage: Storage, visitor: Visitor
) -> dict[str, str]:
    """The files' own names of the references in a form."""
    given = {name: uri for name in parts if (uri := form.value(name))}
    with session_scope(resources.reading_sessions) as session:
        return names_of(session, storage, resources.settings, visitor.caller.team_id, given)


def post(submit: Submit[Body], body: Body, nonce: str, resources: Resources, visitor: Visitor) -> str:
    """Queue the job of a form, and return its id."""
    with session_scope(resources.sessions) as session:
        created = submit(session, resources.settings, visitor.caller.team_id, body, key_of(nonce))
        if created.is_new:
            note(session, visitor.caller, "job.create", created.job.id)
        return created.job.id


def _usual_values() -> dict[str, dict[str, str]]:
    """The value of each knob as a preset or a goal with its usual number has it, as text."""
    chosen = {preset.value: make_config(preset) for preset in Preset}
    chosen |= {name.value: config_for(parse_goal(written(name)))[1] for name in GoalName}
    return {name: {knob: _shown(value) for knob, value in config} for name, config in chosen.items()}


def _shown(value: Any) -> str:
    return "none" if value is None else figure(value)


_USUAL = _usual_values()
_OF_METHODS: dict[tuple[str, ...], str] = {(method,): f"Of {kind.about.title}" for method, kind in METHODS.items()}
_OF_ALL, _OF_THE_PAPER = "Of every method", "Only with the preset published, to reproduce the paper's tables"


def _groups(listed: KnobsRead) -> dict[str, list[KnobRead]]:
    """The knobs by the title of their group."""
    groups: dict[str, list[KnobRead]] = {title: [] for title in (_OF_ALL, *_OF_METHODS.values(), _OF_THE_PAPER)}
    for knob in listed.knobs:
        title = _OF_THE_PAPER if knob.paper_only else _OF_METHODS.get(knob.methods, _OF_ALL)
        groups[title].append(knob)
    return groups


_DATA = {part: {"title": title, "note": Run.model_fields[part].description} for part, title in DATA.items()}


def _page(
    pages: Pages,
    visitor: Visitor,
    form: JobForm,
    *,
    checked: CheckedJob | None = None,
    names: Mapping[str, str] | None = None,
    like: Job | None = None,
    left_out: Sequence[str] = (),
) -> Response:
    listed = list_knobs()
    values: dict[str, Any] = {
        **INPUT_CHOICES,
        "form": form,
        "checked": checked,
        "names": names or {},
        "like": like,
        "left_out": left_out,
        "knobs": listed,
        "knob_groups": _groups(listed).items(),
        "usual": _USUAL,
        "all_forms": FORMS,
        "data": _DATA,
        "about_presets": ABOUT_PRESETS,
        "goals": {name.value: about for name, about in ABOUT_GOALS.items()},
        "finetune": FinetuneSettings.model_fields,
        "head_tasks": HEAD_TASKS,
        "all_events": list(WebhookEvent),
        "usual_events": ENDS,
    }
    return pages.answer("new.html", status=422 if form.errors else 200, visitor=visitor, **values)
