"""A group of jobs: the table of results, and the jobs."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.deps import ReadingDep, ResourcesDep
from api.group_views import group_read
from api.pages import stream
from api.pages.context import Pages
from api.pages.deps import PagesDep, Visitor, VisitorDep, still_valid
from api.pages.stream import Look
from api.resources import Resources
from api.services import groups
from axformer.wire.groups import GroupRow
from store.repositories.groups import cells_of
from store.session import session_scope

router = APIRouter(prefix="/groups/{group_id}")

_LOSS = "loss"
_DATA = {"test": "held-out data", "confirming": "rows that confirmed", "validation": "validation data, which decided"}
"""Data sets that changes are shown for, the least biased first."""


@router.get("")
def show_group(group_id: str, visitor: VisitorDep, session: ReadingDep, pages: PagesDep) -> Response:
    """The page."""
    return pages.answer("group.html", visitor=visitor, **_values(session, visitor, group_id))


@router.get("/live")
def stream_group(
    group_id: str, visitor: VisitorDep, session: ReadingDep, resources: ResourcesDep, pages: PagesDep
) -> Response:
    """What changes on the page, until all jobs have ended."""
    groups.find(session, visitor.caller.team_id, group_id)
    return stream.answer(resources, lambda: _look(resources, pages, visitor, group_id), stream.at_intervals(resources))


def _look(resources: Resources, pages: Pages, visitor: Visitor, group_id: str) -> Look | None:
    if not still_valid(resources, visitor):
        return None
    with session_scope(resources.reading_sessions) as session:
        values = _values(session, visitor, group_id)
    return Look({"now": pages.text("group/now.html", **values)}, is_last=values["group"].has_ended)


def _values(session: Session, visitor: Visitor, group_id: str) -> dict[str, Any]:
    found = groups.find(session, visitor.caller.team_id, group_id)
    shown = group_read(found, cells_of(session, [found.id])[found.id])
    data = next((data for data in _DATA if any(data in row.changes for row in shown.rows)), None)
    return {
        "group": shown,
        "data": data,
        "data_words": None if data is None else _DATA[data],
        "figures": [] if data is None else _figures(shown.rows, data),
    }


def _figures(rows: Sequence[GroupRow], data: str) -> list[str]:
    """The names of all figures that any row has on these data, the loss first."""
    names = {name for row in rows for name in row.changes.get(data, {})}
    return sorted(names, key=lambda name: (name != _LOSS, name))
