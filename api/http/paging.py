"""Keyset pages: ``after`` names the last item seen, so nothing is shown twice or left out while items are added."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Depends, Query

from api.deps import SettingsDep
from api.errors import FieldError, InvalidInputError
from store.tables.jobs import Job

MOST_NUMBER = 2**63 - 1
"""The largest number that the database stores, for a numeric ``after``."""
_CURSOR = r"(?P<id>{prefix}_[0-9a-f]{{32}})(?:@(?P<microseconds>[0-9]{{1,17}}))?"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Limit:
    """How many items the caller wants."""

    asked: int | None
    """None if the caller has not said."""
    page: int
    """Items on a page."""


async def page_limit(
    settings: SettingsDep,
    limit: Annotated[int | None, Query(ge=1, description="Most items to answer with.", examples=[100])] = None,
) -> Limit:
    """The number of items that the caller asked for.

    Raises:
        InvalidInputError: more than a page may have.
    """
    if limit is not None and limit > settings.page_limit_max:
        detail = f"limit={limit} is more than {settings.page_limit_max}; ask for the rest with `after`"
        raise InvalidInputError(detail, errors=[FieldError(detail, parameter="limit")])
    return Limit(asked=limit, page=limit or settings.page_limit_default)


LimitDep = Annotated[Limit, Depends(page_limit)]


def cursor_behind(row: Job) -> str:
    """The ``after`` that continues behind this row. It contains the row's creation time, so it outlives the row."""
    return f"{row.id}@{(row.created_at - _EPOCH) // _MICROSECOND}"


def parse_cursor(after: str, prefix: str) -> tuple[str, datetime | None]:
    """The id in an ``after``, which begins with this prefix, and the row's creation time; None for a bare id.

    Raises:
        InvalidInputError: it is neither.
    """
    found = re.fullmatch(_CURSOR.format(prefix=prefix), after)
    if found is None:
        raise unknown_cursor(after)
    made = found["microseconds"]
    return found["id"], _EPOCH + int(made) * _MICROSECOND if made else None


def unknown_cursor(after: str) -> InvalidInputError:
    """The error for an ``after`` that names nothing."""
    detail = f"after='{after}' is nothing of yours; give the `next` of the page before"
    return InvalidInputError(detail, errors=[FieldError(detail, parameter="after")])
