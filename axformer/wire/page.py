"""A page of a longer list."""

from typing import Generic, TypeVar

from axformer.wire.base import Schema

Item = TypeVar("Item")
Cursor = TypeVar("Cursor", int, str)


class PageRead(Schema, Generic[Item, Cursor]):
    """Some items in order. Ask with ``after=next`` for those that follow, also for those added in the meantime."""

    data: list[Item]
    has_more: bool
    """Whether more follow right now."""
    next: Cursor | None
    """The ``after`` of the next page; null where nothing has been seen yet."""
