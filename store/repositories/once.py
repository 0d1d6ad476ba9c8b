"""Rows that a request creates only once, however often it is sent, because of its idempotency key."""

from collections.abc import Mapping
from typing import Any, TypeVar

from sqlalchemy import Select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from store.tables.base import Base

Row = TypeVar("Row", bound=Base)


def insert_once(
    session: Session, kind: type[Row], values: Mapping[str, Any], same_key: Select[Row]
) -> tuple[Row, bool]:
    """Insert a row, or find the one with the same team and idempotency key, and return whether it is new.

    A concurrent insert of the same row waits for this transaction to end.

    Args:
        same_key: finds the row with this team and key.
    """
    made = insert(kind).values(values).on_conflict_do_nothing(index_elements=["team_id", "idempotency_key"])
    while (row := session.scalars(made.returning(kind)).one_or_none()) is None:
        known = session.scalars(same_key).one_or_none()
        if known is not None:  # otherwise it was deleted between the two statements, and the key is free again
            return known, False
    return row, True
