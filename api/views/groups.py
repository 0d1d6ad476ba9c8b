"""Groups as they are shown."""

from collections import Counter
from collections.abc import Mapping, Sequence

from api.http.paging import cursor_behind
from api.services.group_table import table
from api.views.jobs import job_path
from axformer.wire.groups import CellRead, GroupLinks, GroupRead, GroupRow
from axformer.wire.page import PageRead
from store.page import Page
from store.repositories.groups import CellRow
from store.states import TERMINAL
from store.tables.groups import Group


def group_path(group_id: str) -> str:
    """The address of a group."""
    return f"/v1/groups/{group_id}"


def group_read(group: Group, cells: Sequence[CellRow]) -> GroupRead:
    """A group as it is shown, given its cells."""
    path = group_path(group.id)
    return GroupRead(
        id=group.id,
        name=group.name,
        has_ended=all(cell.state in TERMINAL for cell in cells),
        counts=dict(Counter(cell.state for cell in cells)),
        rows=[GroupRow(**vars(row)) for row in table(group.grid, cells)],
        cells=[CellRead(job=cell.job_id, **cell.cell, state=cell.state, url=job_path(cell.job_id)) for cell in cells],
        created_at=group.created_at,
        links=GroupLinks(self=path, cancel=f"{path}/cancel", retry=f"{path}/retry"),
    )


def groups_page(page: Page[Group], cells: Mapping[str, Sequence[CellRow]]) -> PageRead[GroupRead, str]:
    """Groups as a page, given the cells of each."""
    following = cursor_behind(page.items[-1]) if page.items else None
    groups = [group_read(group, cells[group.id]) for group in page.items]
    return PageRead[GroupRead, str](data=groups, has_more=page.has_more, next=following)
