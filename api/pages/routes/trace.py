"""The whole trace of a job as a table: sorted, filtered, and read from the server a page at a time."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.deps import ReadingDep, ResourcesDep
from api.errors import NoSuchObjectError
from api.pages.deps import PagesDep, VisitorDep
from api.pages.job_parts import job_values
from api.routes.trace import whole_trace
from api.services import jobs
from api.services.trace_formats import CSV, NDJSON, SUFFIXES
from axformer.plan.trial import Phase, Verdict
from store.repositories.trace_views import SORTABLE, fitting, trial_table

router = APIRouter(prefix="/jobs/{job_id}/trace")

FILES = {SUFFIXES[media_type]: media_type for media_type in (CSV, NDJSON)}
"""Formats for downloading a whole trace."""
ROWS = 100
"""Trials on a page: a few screens, rendered in some ten milliseconds."""
_MOST_PAGES = 100_000
"""Most pages; a pass has thousands or tens of thousands of trials."""


@dataclass
class TraceView:
    """The filters and the order of a trace, as in the page's address; unknown words in it are ignored."""

    sort: str = ""
    order: str = ""
    verdict: str = ""
    phase: str = ""
    element: str = ""
    page: Annotated[int, Query(ge=1, le=_MOST_PAGES)] = 1

    def __post_init__(self) -> None:
        self.sort = self.sort if self.sort in SORTABLE else "seq"
        self.order = self.order if self.order == "down" else ""
        self.verdict = self.verdict if self.verdict in list(Verdict) else ""
        self.phase = self.phase if self.phase in list(Phase) else ""
        self.element = "".join(letter for letter in self.element if letter.isprintable()).strip()

    def query(self, **changes: str | int) -> str:
        """The address of the same view with some changes."""
        values = vars(self) | {"page": 1} | changes
        return urlencode({name: value for name, value in values.items() if value not in ("", 1)})

    def sorted_by(self, column: str) -> str:
        """The address of the same view sorted by a column, or in reverse if it already is."""
        is_turned = column == self.sort and self.order != "down"
        return self.query(sort=column, order="down" if is_turned else "")


@router.get("/file/{suffix}")
def get_trace(job_id: str, suffix: str, visitor: VisitorDep, session: ReadingDep, resources: ResourcesDep) -> Response:
    """Download all trials."""
    job = jobs.find(session, visitor.caller.team_id, job_id)
    if suffix not in FILES:
        raise NoSuchObjectError(f"a trace cannot be read as a '{suffix}' file; there are {', '.join(FILES)}")
    return whole_trace(resources, visitor.caller, job.id, FILES[suffix])


@router.get("")
def show_trace(
    job_id: str,
    visitor: VisitorDep,
    session: ReadingDep,
    resources: ResourcesDep,
    pages: PagesDep,
    view: Annotated[TraceView, Depends()],
) -> Response:
    """The page."""
    job = jobs.find(session, visitor.caller.team_id, job_id)
    fits, is_down = fitting(job.id, view.verdict, view.phase, view.element), view.order == "down"
    trials, total = trial_table(session, fits, view.sort, descending=is_down, offset=(view.page - 1) * ROWS, limit=ROWS)
    return pages.answer(
        "trace.html",
        visitor=visitor,
        tab="trace",
        view=view,
        trials=trials,
        total=total,
        last_page=max(1, -(-total // ROWS)),
        verdicts=list(Verdict),
        phases=list(Phase),
        columns=SORTABLE,
        suffixes=list(FILES),
        **job_values(session, resources, visitor.caller, job),
    )
