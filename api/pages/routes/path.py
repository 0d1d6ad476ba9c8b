"""The path of a pass: every acceptance as a model, and a job to export any of them."""

from collections.abc import Sequence
from math import ceil
from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, Query
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from api.deps import ReadingDep, ResourcesDep, SessionDep
from api.errors import InvalidInputError
from api.pages.context import PAGE_HEADERS
from api.pages.deps import FormDep, PagesDep, VisitorDep, WriterDep
from api.pages.job_form import NONCE_FIELD, form_nonce, key_of
from api.pages.job_parts import job_values
from api.pages.pictures import PLACE, WidthQuery, curve_of, fragment
from api.services import exports, jobs, paths
from axformer.forms.kinds import KINDS
from axformer.scores.path_costs import costs_of
from axformer.wire.jobs import ExportCreate
from axformer.wire.report import PathPoint
from store.references import HUB_PREFIX
from store.repositories.audit import note

router = APIRouter(prefix="/jobs/{job_id}/path")
_ROUNDING = 1e-6


@router.get("")
def show_path(
    job_id: str,
    visitor: VisitorDep,
    session: ReadingDep,
    resources: ResourcesDep,
    pages: PagesDep,
    within: Annotated[float | None, Query(ge=0, allow_inf_nan=False)] = None,
) -> Response:
    """The page, with the fastest model ``within`` some points chosen, or else the one that was kept."""
    team_id = visitor.caller.team_id
    job = jobs.find(session, team_id, job_id)
    points = paths.path_of(session, team_id, job_id).data
    values = job_values(session, resources, visitor.caller, job)
    return pages.answer(
        "path.html",
        visitor=visitor,
        tab="path",
        points=points,
        **_choice(points, within),
        curve=curve_of(points),
        kinds=KINDS,
        nonce=form_nonce(),
        reads_hub=any(one["uri"].startswith(HUB_PREFIX) for one in job.sources.values()),
        **values,
    )


def _choice(points: Sequence[PathPoint], within: float | None) -> dict[str, Any]:
    """What models cost, which one is chosen, and where the slider stands; nothing without a path."""
    if not points:
        return {}
    costs = costs_of(points)[0]
    most = max(ceil(max(model.cost for model in costs.models) - _ROUNDING), 1)
    kept = next((model for model in costs.models if model.point.kept), costs.models[0])
    chosen = kept if within is None else costs.within(within)
    allowed = max(0.0, kept.cost) if within is None else min(within, most)
    shown = sorted(
        (model for model in costs.models if model.is_best or model.point.kept), key=lambda model: model.times
    )
    return {
        "costs": costs,
        "shown": shown,
        "chosen": chosen,
        "most": most,
        "within": ceil(10 * allowed - _ROUNDING) / 10,
    }


@router.get("/curve")
def get_curve(job_id: str, visitor: VisitorDep, session: ReadingDep, width: WidthQuery = PLACE) -> Response:
    """The curve of what speed costs."""
    return fragment(curve_of(paths.path_of(session, visitor.caller.team_id, job_id).data, width))


@router.post("")
def export_point(
    job_id: str,
    visitor: WriterDep,
    sent: FormDep,
    session: SessionDep,
    resources: ResourcesDep,
    after_commit: BackgroundTasks,
) -> Response:
    """Queue an export of the chosen model, and redirect to it."""
    try:
        seq, body = int(str(sent["seq"])), ExportCreate.model_validate({"forms": ["compact", *sent.getlist("forms")]})
    except (KeyError, ValueError) as error:
        what = "a form is unknown" if isinstance(error, ValidationError) else "no trial was chosen"
        raise InvalidInputError(f"{what}; go back, choose a trial and forms, and send it again") from None
    key = key_of(str(sent.get(NONCE_FIELD, "")))
    created = exports.submit(session, resources.settings, visitor.caller.team_id, job_id, seq, body, key)
    if created.is_new:
        note(session, visitor.caller, "job.create", created.job.id)
        after_commit.add_task(resources.wakeup.wake)
    return RedirectResponse(f"/jobs/{created.job.id}", 303, headers=PAGE_HEADERS)
