"""The form for an analysis: empty, or with the inputs of a job of the team."""

from collections.abc import Mapping, Sequence

from fastapi import APIRouter, BackgroundTasks
from starlette.responses import RedirectResponse, Response

from api.deps import ReadingDep, ResourcesDep, StorageDep
from api.errors import ApiError
from api.pages.context import PAGE_HEADERS, Pages
from api.pages.deps import FormDep, PagesDep, Visitor, WriterDep
from api.pages.job_form import ALL, INPUT_CHOICES, AnalysisForm
from api.pages.posted_again import analysis_like
from api.pages.routes.new_job import names_in, post
from api.services import analyses, jobs
from axformer.wire.analyses import PARTS
from store.tables.jobs import Job

router = APIRouter(prefix="/analyses")


@router.get("/new")
def show_form(
    visitor: WriterDep,
    session: ReadingDep,
    resources: ResourcesDep,
    storage: StorageDep,
    pages: PagesDep,
    like: str | None = None,
) -> Response:
    """The form: empty, or filled in with the model and the data of a job of the team."""
    if like is None:
        return _page(pages, visitor, AnalysisForm(), {})
    job = jobs.find(session, visitor.caller.team_id, like)
    form, left_out = analysis_like(job)
    return _page(pages, visitor, form, names_in(form, PARTS, resources, storage, visitor), like=job, left_out=left_out)


@router.post("/new")
def send_form(
    visitor: WriterDep,
    sent: FormDep,
    pages: PagesDep,
    resources: ResourcesDep,
    storage: StorageDep,
    after_commit: BackgroundTasks,
) -> Response:
    """Post the analysis."""
    form = AnalysisForm.read(sent)
    body = form.asked()
    try:
        job_id = None if body is None else post(analyses.submit, body, form.nonce, resources, visitor)
    except ApiError as error:
        form.refuse(error)
        job_id = None
    if job_id is None:
        return _page(pages, visitor, form, names_in(form, PARTS, resources, storage, visitor))
    after_commit.add_task(resources.wakeup.wake)
    return RedirectResponse(f"/jobs/{job_id}", 303, headers=PAGE_HEADERS)


def _page(
    pages: Pages,
    visitor: Visitor,
    form: AnalysisForm,
    names: Mapping[str, str],
    *,
    like: Job | None = None,
    left_out: Sequence[str] = (),
) -> Response:
    values = {"form": form, "names": names, "like": like, "left_out": left_out, "all_reports": ALL}
    return pages.answer(
        "new_analysis.html", status=422 if form.errors else 200, visitor=visitor, **INPUT_CHOICES, **values
    )
