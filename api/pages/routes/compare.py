"""Two to six jobs side by side: how the loss went down in each, their figures, and the knobs in which they differ."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from markupsafe import Markup
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.deps import ReadingDep
from api.errors import FieldError, InvalidInputError
from api.job_views import job_read
from api.pages.deps import PagesDep, Visitor, VisitorDep
from api.pages.pictures import PLACE, WidthQuery, fragment, markup
from api.services import jobs
from axformer.drawing.comparison import Course, comparison
from axformer.wire.jobs import JobRead
from store.repositories.trace_views import Totals, standing_points, trace_totals

router = APIRouter(prefix="/compare")

LEAST, MOST = 2, 6
"""Number of jobs side by side; more curves could not be told apart."""
LETTERS = "ABCDEF"
JobsDep = Annotated[list[str], Query(alias="job")]


@router.get("")
def show_comparison(
    visitor: VisitorDep,
    session: ReadingDep,
    pages: PagesDep,
    wanted: JobsDep = [],  # noqa: B006 - never changed
) -> Response:
    """The page."""
    shown = _jobs(session, visitor, wanted)
    return pages.answer(
        "compare.html",
        visitor=visitor,
        jobs=shown,
        letters=LETTERS,
        query="&".join(f"job={job.id}" for job in shown),
        curves=_curves(session, shown),
        figures=_figures(shown, [trace_totals(session, job.id) for job in shown]),
        knobs=_differing(shown),
    )


@router.get("/chart")
def get_curves(
    visitor: VisitorDep,
    session: ReadingDep,
    wanted: JobsDep = [],  # noqa: B006 - never changed
    width: WidthQuery = PLACE,
) -> Response:
    """The chart of the losses of all jobs."""
    return fragment(_curves(session, _jobs(session, visitor, wanted), width))


def _curves(session: Session, shown: Sequence[JobRead], width: int = PLACE) -> Markup | None:
    courses = [
        Course(letter, job.name, standing_points(session, job.id), trace_totals(session, job.id).trials)
        for letter, job in zip(LETTERS, shown, strict=False)
    ]
    return markup(comparison(courses, width)) if any(course.steps for course in courses) else None


def _jobs(session: Session, visitor: Visitor, wanted: Sequence[str]) -> list[JobRead]:
    ids = list(dict.fromkeys(wanted))
    if not LEAST <= len(ids) <= MOST:
        detail = f"{len(ids)} jobs were ticked; tick {LEAST} to {MOST} on the board to see them side by side"
        raise InvalidInputError(detail, errors=[FieldError(detail, parameter="job")])
    rows = [jobs.find(session, visitor.caller.team_id, job_id) for job_id in ids]
    return [job_read(job) for job in rows]


def _figures(shown: Sequence[JobRead], totals: Sequence[Totals]) -> list[tuple[str, str, list[Any]]]:
    """Name, filter and value in each job."""
    reports = [job.report for job in shown]
    base = [None if report is None else report.base for report in reports]
    pruned = [None if report is None else report.pruned for report in reports]
    rows: list[tuple[str, str, list[Any]]] = [
        ("loss before", "loss", [_losses(job)[0] for job in shown]),
        ("loss after", "loss", [_losses(job)[1] for job in shown]),
        ("trials", "count", [total.trials for total in totals]),
        ("accepted", "count", [total.accepted for total in totals]),
        ("refined", "count", [total.refined for total in totals]),
        ("seconds of trials", "duration", [total.seconds for total in totals]),
        ("parameters before", "short_count", _of(base, "parameters")),
        ("parameters after", "short_count", _of(pruned, "parameters")),
        ("of the encoder before", "short_count", _of(base, "encoder_parameters")),
        ("of the encoder after", "short_count", _of(pruned, "encoder_parameters")),
        ("latency after, ms", "figure", _of(pruned, "latency_ms")),
        ("latency without pruning, ms", "figure", [report and report.one_position_ms for report in reports]),
    ]
    names = {name for report in reports if report for name in (report.pruned["test"] or {})}
    for name in sorted(names):
        values = [(report.pruned["test"] or {}).get(name) if report else None for report in reports]
        if all(value is None or isinstance(value, int | float) for value in values):
            rows.append((f"held-out {name} after", "loss", values))
    return rows


def _losses(job: JobRead) -> tuple[float | None, float | None]:
    """The validation loss before and after: of the model that was kept, or the lowest so far while the job runs."""
    if job.report is not None:
        return job.report.base["validation"]["loss"], job.report.pruned["validation"]["loss"]
    return (job.progress.base_loss, job.progress.min_loss) if job.progress else (None, None)


def _of(models: Sequence[dict[str, Any] | None], name: str) -> list[Any]:
    """A figure of each job's model; None if there is no report, or one without it."""
    return [model and model.get(name) for model in models]


def _differing(shown: Sequence[JobRead]) -> list[tuple[str, list[Any]]]:
    names = dict.fromkeys(name for job in shown for name in job.config)
    rows = [(name, [job.config.get(name) for job in shown]) for name in names]
    return [(name, values) for name, values in rows if any(value != values[0] for value in values)]
