"""The library's pictures on pages, drawn for the available width with no more trials than can be distinguished."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from fastapi import Query
from markupsafe import Markup
from pydantic import ValidationError
from sqlalchemy.orm import Session
from starlette.responses import HTMLResponse

from api.pages.context import PAGE_HEADERS
from api.services.paths import points_of
from axformer.config import config_class, fits_weights
from axformer.drawing.chart import TrialCounts, loss_chart
from axformer.drawing.curve import path_curve
from axformer.drawing.picture import picture
from axformer.drawing.svg import NARROW, WIDE, inline
from axformer.plan.elements import Dimensions, neurons, parse
from axformer.plan.plan import Plan
from axformer.plan.trial import Verdict
from axformer.wire.report import PathPoint
from store.repositories import trace_views
from store.tables.jobs import Job

PLACE = 1140
"""Width of a picture until a script reports the available one: the widest on the pages."""
MOST_MARKS = 800
"""Rejected trials in a chart; more would cover each other, and each costs some 200 bytes whenever the chart is drawn again."""
MOST_NEURONS = 3000
"""Trials of neurons that the map shows one by one: a large encoder in groups of a twelfth has 300; more than some thousand
would be thinner than a line."""
_CROWDED = Markup(
    '<p class="note under">Too many groups of neurons were tried to show each: parts of which most neurons are removed are '
    "marked.</p>"
)
WidthQuery = Annotated[int, Query(ge=NARROW, le=WIDE)]


def fragment(drawn: Markup | None) -> HTMLResponse:
    """A picture as an answer to a script; empty if there is none yet."""
    return HTMLResponse(drawn or "", headers=PAGE_HEADERS)


def markup(drawn: str) -> Markup:
    """A picture of the library inside a page."""
    return Markup(inline(drawn))  # noqa: S704 - made of numbers and escaped words


def chart_of(session: Session, job: Job, totals: trace_views.Totals, width: int = PLACE) -> Markup | None:
    """The chart of a job's trials; None before the first one.

    Where trials are of whole plans it is the curve of what speed costs, which grows with every model; else that of losses.
    """
    if holds_plans(job):
        path = _path_so_far(session, job)
        if path:
            return curve_of(path, width) if len(path) > 1 else None
    points = trace_views.thinned_points(session, job.id, most=MOST_MARKS)
    if not points:
        return None
    tally = TrialCounts(totals.trials, totals.accepted, totals.refined, totals.rejected, totals.early)
    return markup(loss_chart(points, tally, width, kept=_kept(job)))


def holds_plans(job: Job) -> bool:
    """Whether the trials of a job are of whole plans."""
    return config_class(job.config).about.of_plans


def _path_so_far(session: Session, job: Job) -> list[PathPoint]:
    """The models of a job as points on its path, none of them kept while the run goes on; empty if path or trials are of an
    earlier version, which tells less."""
    if job.path:
        try:
            return points_of(job)
        except ValidationError:
            return []
    trials = trace_views.standing_trials(session, job.id)
    told = [trial.figures for trial in trials if trial.figures is not None]
    if len(told) < len(trials):
        return []
    return [
        PathPoint(
            seq=trial.seq,
            element=trial.element,
            loss=trial.loss,
            deciding=figures.metrics,
            confirming=None,
            test=None,
            **figures.model_dump(exclude={"metrics"}),
            estimated_speedup=told[0].operations / max(1, figures.operations),
            kept=False,
        )
        for trial, figures in zip(trials, told, strict=True)
    ]


def map_of(session: Session, job: Job, width: int = PLACE) -> Markup | None:
    """The map of the model's elements; None until a worker has loaded the model."""
    known = (job.progress or {}).get("dimensions")
    if not known:
        return None
    dimensions = Dimensions(**known)
    if holds_plans(job):
        layers = trace_views.last_plan(session, job.id, upto=_kept(job))
        whole = Plan.full(dimensions) if layers is None else Plan.model_validate({"layers": layers})
        return markup(picture(whole, dimensions, None, width))
    tried, is_whole = trace_views.element_points(session, job.id, most_neurons=MOST_NEURONS)
    points = _standing(tried, _kept(job))
    plan, top_k, is_fitted = Plan.full(dimensions), job.config.get("attention_top_k"), fits_weights(job.config)
    for point in points:
        if point.element is not None and point.verdict == Verdict.ACCEPT:
            plan = plan.apply(parse(point.element), top_k=top_k, keeps_bias=is_fitted)
    if is_whole:
        return markup(picture(plan, dimensions, points, width))
    for layer, ranges in trace_views.gone_neurons(session, job.id, upto=_kept(job)).items():
        gone = replace(neurons(layer, ranges[0][0], ranges[-1][1]), scattered=tuple(ranges))
        plan = plan.apply(gone, top_k=None, keeps_bias=True)
    return markup(picture(plan, dimensions, points, width, is_crowded=True)) + _CROWDED


def curve_of(path: Sequence[PathPoint], width: int = PLACE) -> Markup | None:
    """The curve of what speed costs; None without a path."""
    return markup(path_curve(path, width)) if path else None


def _kept(job: Job) -> int | None:
    """The trial whose model is kept; None until that is decided."""
    known: int | None = (job.progress or {}).get("kept")
    return next((one["seq"] for one in job.path or [] if one["kept"]), known)


def _standing(points: Sequence[trace_views.TracePoint], kept: int | None) -> Sequence[trace_views.TracePoint]:
    """The trials, with those accepted after the kept point shown as rejected."""
    if kept is None:
        return points
    return [
        point._replace(verdict=Verdict.REJECT) if point.seq > kept and point.verdict == Verdict.ACCEPT else point
        for point in points
    ]
