"""A group of jobs: the table of results, and the jobs."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from markupsafe import Markup
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.deps import ReadingDep, ResourcesDep
from api.pages import stream
from api.pages.context import Pages
from api.pages.deps import PagesDep, Visitor, VisitorDep, still_valid
from api.pages.pictures import PLACE, WidthQuery, fragment, markup
from api.pages.stream import PageState
from api.resources import Resources
from api.services import groups
from api.views.groups import group_read
from axformer.errors import InputError
from axformer.reporting.side_by_side import side_by_side_in_group
from axformer.wire.groups import GroupRead, GroupRow
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


@router.get("/chart")
def get_chart(
    group_id: str,
    visitor: VisitorDep,
    session: ReadingDep,
    wanted: Annotated[str, Query(alias="set")],
    width: WidthQuery = PLACE,
) -> Response:
    """The picture of all settings on one set of the group."""
    return fragment(_chart(_group(session, visitor, group_id), wanted, width))


@router.get("/live")
def stream_group(
    group_id: str, visitor: VisitorDep, session: ReadingDep, resources: ResourcesDep, pages: PagesDep
) -> Response:
    """What changes on the page, until all jobs have ended."""
    groups.find(session, visitor.caller.team_id, group_id)
    return stream.answer(resources, lambda: _look(resources, pages, visitor, group_id), stream.at_intervals(resources))


def _look(resources: Resources, pages: Pages, visitor: Visitor, group_id: str) -> PageState | None:
    if not still_valid(resources, visitor):
        return None
    with session_scope(resources.reading_sessions) as session:
        values = _values(session, visitor, group_id)
    return PageState({"now": pages.text("group/now.html", **values)}, is_last=values["group"].has_ended)


def _values(session: Session, visitor: Visitor, group_id: str) -> dict[str, Any]:
    shown = _group(session, visitor, group_id)
    data = next((data for data in _DATA if any(data in row.changes for row in shown.rows)), None)
    return {
        "group": shown,
        "data": data,
        "data_words": None if data is None else _DATA[data],
        "figures": [] if data is None else _figures(shown.rows, data),
        "charts": {name: _chart(shown, name) for name in dict.fromkeys(row.set for row in shown.rows)},
    }


def _group(session: Session, visitor: Visitor, group_id: str) -> GroupRead:
    found = groups.find(session, visitor.caller.team_id, group_id)
    return group_read(found, cells_of(session, [found.id])[found.id])


def _chart(group: GroupRead, name: str, width: int = PLACE) -> Markup | None:
    """None until a job of the set has succeeded."""
    rows = [row for row in group.rows if row.set == name]
    prefix = f"set-{[row.set for row in group.rows].index(name)}" if rows else "set"
    try:
        return markup(side_by_side_in_group(prefix, rows, width))
    except InputError:
        return None


def _figures(rows: Sequence[GroupRow], data: str) -> list[str]:
    """The names of all figures that any row has on these data, the loss first."""
    names = {name for row in rows for name in row.changes.get(data, {})}
    return sorted(names, key=lambda name: (name != _LOSS, name))
