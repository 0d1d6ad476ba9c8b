"""A group of jobs: the table of what came of them, and the jobs themselves."""

from collections.abc import Sequence

from fastapi import APIRouter
from starlette.responses import Response

from api.deps import ReadingDep
from api.group_views import group_read
from api.pages.deps import PagesDep, VisitorDep
from api.schemas.groups import GroupRow
from api.services import groups
from store.repositories.groups import cells_of

router = APIRouter(prefix="/groups")

_LOSS = "loss"
_DATA = {"test": "held-out data", "confirming": "rows that confirmed", "validation": "validation data, which decided"}
"""What changes are told of, the most honest first."""


@router.get("/{group_id}")
def show_group(group_id: str, visitor: VisitorDep, session: ReadingDep, pages: PagesDep) -> Response:
    """The page."""
    found = groups.find(session, visitor.caller.team_id, group_id)
    shown = group_read(found, cells_of(session, [found.id])[found.id])
    data = next((data for data in _DATA if any(data in row.changes for row in shown.rows)), None)
    return pages.answer(
        "group.html",
        visitor=visitor,
        group=shown,
        data=data,
        data_words=None if data is None else _DATA[data],
        figures=[] if data is None else _figures(shown.rows, data),
    )


def _figures(rows: Sequence[GroupRow], data: str) -> list[str]:
    """The names of all figures that some row tells of these data, the loss first."""
    names = {name for row in rows for name in row.changes.get(data, {})}
    return sorted(names, key=lambda name: (name != _LOSS, name))
