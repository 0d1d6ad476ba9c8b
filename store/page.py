"""A page of a longer list."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class Page(Generic[Item]):
    """Some items of a list in order, and whether more follow the last of them."""

    items: Sequence[Item]
    has_more: bool


def page_of(items: Sequence[Item], limit: int) -> Page[Item]:
    """The page of at most ``limit`` items, given one item more if there is one."""
    return Page(items=items[:limit], has_more=len(items) > limit)
