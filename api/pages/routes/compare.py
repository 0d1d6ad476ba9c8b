"""Two to six jobs side by side, ticked or of a label: their results, their figures, and the knobs in which they differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from markupsafe import Markup
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.deps import ReadingDep
from api.errors import FieldError, InvalidInputError
from api.pages.deps import PagesDep, Visitor, VisitorDep
from api.pages.pictures import PLACE, WidthQuery, fragment, markup
from api.services import jobs
from api.views.jobs import job_read
from axformer.errors import InputError
from axformer.reporting.deploy_table import deployables
from axformer.reporting.deployable import Deployables
from axformer.reporting.side_by_side import side_by_side
from axformer.wire.jobs import JobRead, ReportRead
from axformer.wire.metrics import LOWER_IS_BETTER, first_metric
from store.repositories.trace_views import Totals, trace_totals

router = APIRouter(prefix="/compare")

LEAST, MOST = 2, 6
"""Number of jobs side by side; more could not be told apart."""
LETTERS = "ABCDEF"


@dataclass(frozen=True)
class AskedJobs:
    """Which jobs stand side by side: those that are named, then those with all labels, the oldest first."""

    ids: Sequence[str]
    labels: Sequence[str]
    """Each ``key:value``."""


def _asked(
    job: Annotated[list[str], Query()] = [],  # noqa: B006 - never changed
    label: Annotated[list[str], Query()] = [],  # noqa: B006
) -> AskedJobs:
    return AskedJobs(job, label)


AskedDep = Annotated[AskedJobs, Depends(_asked)]


@router.get("")
def show_comparison(visitor: VisitorDep, session: ReadingDep, pages: PagesDep, chosen: AskedDep) -> Response:
    """The page."""
    shown = _jobs(session, visitor, chosen)
    return pages.answer(
        "compare.html",
        visitor=visitor,
        jobs=shown,
        letters=LETTERS,
        query="&".join(f"job={job.id}" for job in shown),
        results=_results(shown),
        figures=_figures(shown, [trace_totals(session, job.id) for job in shown]),
        knobs=_differing(shown),
    )


@router.get("/results")
def get_results(visitor: VisitorDep, session: ReadingDep, chosen: AskedDep, width: WidthQuery = PLACE) -> Response:
    """The picture of all results: what each form changed of the metric, against its speed."""
    return fragment(_results(_jobs(session, visitor, chosen), width))


def _results(shown: Sequence[JobRead], width: int = PLACE) -> Markup | None:
    """None where no two results can be drawn on one axis."""
    named = [(f"{letter} {job.name}", _forms(job.report)) for letter, job in zip(LETTERS, shown, strict=False)]
    try:
        return markup(side_by_side([(name, forms) for name, forms in named if forms is not None], width))
    except InputError:
        return None


def _forms(report: ReportRead | None) -> Deployables | None:
    return None if report is None else deployables(report.model_dump())


def _jobs(session: Session, visitor: Visitor, chosen: AskedJobs) -> list[JobRead]:
    ids = list(dict.fromkeys(chosen.ids))
    if not chosen.labels or len(ids) > MOST:
        _check_count(len(ids), f"{len(ids)} jobs were ticked")
    team_id = visitor.caller.team_id
    rows = [jobs.find(session, team_id, job_id) for job_id in ids]
    if chosen.labels:
        page = jobs.list_jobs(session, team_id, limit=MOST + 1, after=None, states=[], labels=chosen.labels)
        rows += [job for job in reversed(page.items) if job.id not in ids]
        count = f"{len(rows)} or more" if page.has_more else str(len(rows))
        _check_count(len(rows), f"{count} jobs have label {', '.join(chosen.labels)}")
    return [job_read(job) for job in rows]


def _check_count(count: int, told: str) -> None:
    if not LEAST <= count <= MOST:
        detail = f"{told}; tick {LEAST} to {MOST} on the board to see them side by side"
        raise InvalidInputError(detail, errors=[FieldError(detail, parameter="job")])


@dataclass(frozen=True)
class ComparedRow:
    """One figure of every job."""

    name: str
    filter: str
    """The template's filter for its values."""
    values: Sequence[Any]
    better: Literal["low", "high"] | None = None
    """Which values are better; None if neither is."""

    @property
    def best(self) -> set[int]:
        """The places of the best value, if jobs differ in it."""
        known = [value for value in self.values if value is not None]
        if self.better is None or len(set(known)) < 2:
            return set()
        wanted = min(known) if self.better == "low" else max(known)
        return {place for place, value in enumerate(self.values) if value == wanted}

    @property
    def differences(self) -> list[float | None]:
        """How much each value is above that of the first job; none for figures that are not better or worse."""
        first = self.values[0]
        if self.better is None or first is None:
            return [None] * len(self.values)
        others = self.values[1:]
        return [None, *(None if value is None else value - first for value in others)]


def _figures(shown: Sequence[JobRead], totals: Sequence[Totals]) -> list[ComparedRow]:
    """The figures, those that one chooses by first."""
    reports = [job.report for job in shown]
    base = [None if report is None else report.base for report in reports]
    pruned = [None if report is None else report.pruned for report in reports]
    latencies = [_of(some, "latency_ms") for some in (base, pruned)]
    one_position = [None if report is None else report.one_position_ms for report in reports]
    return [
        *_deployed(reports),
        *_held_out(base, pruned),
        *_certified(shown),
        ComparedRow("times as fast, PyTorch", "times", list(map(_ratio, *latencies)), "high"),
        ComparedRow("times as fast by pruning alone", "times", list(map(_ratio, one_position, latencies[1])), "high"),
        ComparedRow("validation loss before", "loss", [_losses(job)[0] for job in shown]),
        ComparedRow("validation loss after", "loss", [_losses(job)[1] for job in shown], "low"),
        ComparedRow("parameters before", "short_count", _of(base, "parameters")),
        ComparedRow("parameters after", "short_count", _of(pruned, "parameters")),
        ComparedRow("of the encoder before", "short_count", _of(base, "encoder_parameters")),
        ComparedRow("of the encoder after", "short_count", _of(pruned, "encoder_parameters")),
        ComparedRow("trials", "count", [total.trials for total in totals]),
        ComparedRow("accepted", "count", [total.accepted for total in totals]),
        ComparedRow("refined", "count", [total.refined for total in totals]),
        ComparedRow("seconds of trials", "duration", [total.seconds for total in totals]),
    ]


def _deployed(reports: Sequence[ReportRead | None]) -> list[ComparedRow]:
    """The form of each result that is shown where there is room for one."""
    found = [_forms(report) for report in reports]
    if not any(found):
        return []
    forms = [None if one is None else one.shown for one in found]
    return [
        ComparedRow("form to take", "figure", [form and form.title for form in forms]),
        ComparedRow("times as fast, that form", "times", [form and form.times for form in forms], "high"),
    ]


def _certified(shown: Sequence[JobRead]) -> list[ComparedRow]:
    """How many times fewer operations labels have certified; nothing where none were given."""
    labels = [None if job.labelled is None else job.labelled.labels for job in shown]
    best = [job.labelled and job.labelled.best for job in shown]
    if not any(labels):
        return []
    times = [form and form.times for form in best]
    return [
        ComparedRow("times fewer operations, certified by labels", "times", times, "high"),
        ComparedRow("labels", "count", labels),
    ]


def _held_out(base: Sequence[dict[str, Any] | None], pruned: Sequence[dict[str, Any] | None]) -> list[ComparedRow]:
    """Each figure on held-out data, before and after."""
    before, after = ([(one or {}).get("test") or {} for one in some] for some in (base, pruned))
    rows = []
    for name in sorted(
        {name for one in after for name in one}, key=lambda name: (name != first_metric(after[0]), name)
    ):
        values = [one.get(name) for one in after]
        if all(value is None or isinstance(value, int | float) for value in values):
            rows.append(ComparedRow(f"held-out {name} before", "loss", [one.get(name) for one in before]))
            rows.append(
                ComparedRow(f"held-out {name} after", "loss", values, "low" if name in LOWER_IS_BETTER else "high")
            )
    return rows


def _ratio(before: float | None, after: float | None) -> float | None:
    return None if before is None or not after else before / after


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
