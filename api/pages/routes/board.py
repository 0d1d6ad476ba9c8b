"""The board: running jobs, waiting jobs with their estimated times, workers, and all jobs of the team."""

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.deps import ReadingDep, ResourcesDep
from api.errors import InvalidInputError
from api.pages import stream
from api.pages.context import Pages
from api.pages.deps import PagesDep, Visitor, VisitorDep, still_valid
from api.pages.job_form import demo_form
from api.pages.stream import PageState
from api.resources import Resources
from api.services import jobs, queue
from api.views.jobs import jobs_page
from axformer.reporting.deploy_table import deployables
from axformer.wire.states import JobOutcome
from store.session import session_scope
from store.states import JobState

router = APIRouter()

WAITING_SHOWN = 10
"""Most waiting jobs of the team that are shown; the rest are counted and appear in the list below."""
_BAD = (JobOutcome.TARGET_MISSED, JobOutcome.NOT_USABLE)
"""The outcomes of succeeded jobs that were not what was wished for."""
LINE_SHOWN = 120
"""Most places of the line of all teams that are drawn; more would be too thin on a phone."""


@dataclass
class Filter:
    """Which jobs the list shows, as in the page's address."""

    state: str = ""
    """A state, or an outcome of ``_BAD``, or nothing for all."""
    text: str = ""
    label: str = ""
    after: str = ""
    """Where an older page begins."""

    def __post_init__(self) -> None:
        self.text = "".join(letter for letter in self.text if letter.isprintable()).strip()
        self.label = self.label.strip()

    def query(self, **changes: str) -> str:
        """The filter as the query of an address, with some changes."""
        return urlencode({name: value for name, value in (vars(self) | changes).items() if value})


FilterDep = Annotated[Filter, Depends()]


@router.get("/")
def show_board(
    visitor: VisitorDep, session: ReadingDep, resources: ResourcesDep, pages: PagesDep, wanted: FilterDep
) -> Response:
    """The page."""
    values = _now(session, resources, visitor) | _history(session, resources, visitor, wanted)
    return pages.answer("board.html", **values)


@router.get("/board/live")
def stream_board(visitor: VisitorDep, resources: ResourcesDep, pages: PagesDep, wanted: FilterDep) -> Response:
    """What changes on it."""
    return stream.answer(resources, lambda: _look(resources, pages, visitor, wanted), stream.at_intervals(resources))


def _look(resources: Resources, pages: Pages, visitor: Visitor, wanted: Filter) -> PageState | None:
    if not still_valid(resources, visitor):
        return None
    with session_scope(resources.reading_sessions) as session:
        now = _now(session, resources, visitor)
        history = _history(session, resources, visitor, wanted)
    parts = {"now": now, "history": history}
    return PageState({name: pages.text(f"board/{name}.html", **values) for name, values in parts.items()})


def _now(session: Session, resources: Resources, visitor: Visitor) -> dict[str, Any]:
    seen = queue.look(session, resources.queue_views.get(), visitor.caller, WAITING_SHOWN)
    own_waiting = next((one.jobs for one in seen.by_team if one.team is not None), 0)
    return {"queue": seen, "own_waiting": own_waiting, "line_shown": LINE_SHOWN}


def _history(session: Session, resources: Resources, visitor: Visitor, wanted: Filter) -> dict[str, Any]:
    values: dict[str, Any] = {
        "wanted": wanted,
        "states": list(JobState),
        "bad": _BAD,
        "demo": demo_form(resources.settings) is not None,
        "visitor": visitor,
        "error": None,
    }
    try:
        page = jobs.list_jobs(
            session,
            visitor.caller.team_id,
            limit=resources.settings.page_limit_default,
            after=wanted.after or None,
            states=[JobState(wanted.state)] if wanted.state in list(JobState) else [],
            labels=[wanted.label] if wanted.label else [],
            text=wanted.text or None,
            outcome=next((outcome for outcome in _BAD if outcome == wanted.state), None),
        )
    except InvalidInputError as error:
        return values | {"jobs": [], "older": None, "error": error.detail}
    shown = jobs_page(page)
    outcomes = {job.id: deployables(job.report.model_dump()) for job in shown.data if job.report is not None}
    return values | {"jobs": shown.data, "outcomes": outcomes, "older": shown.next if page.has_more else None}
