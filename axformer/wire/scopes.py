"""What a key may do. Each scope holds the one before it, so a key has one, and a route demands one."""

from enum import StrEnum
from typing import Annotated

from axformer.wire.base import WordOf


class Scope(StrEnum):
    """From the least to the most."""

    READ = "read"
    """Look at what the team has."""
    WRITE = "write"
    """And change it: post, cancel and delete jobs, send and delete files."""
    ADMIN = "admin"
    """And decide who else may: keys, secrets of webhooks, the audit log."""

    @property
    def rank(self) -> int:
        """Its place in the order."""
        return list(Scope).index(self)

    def includes(self, other: "Scope") -> bool:
        """Whether a key of this scope may do what that one allows."""
        return self.rank >= other.rank

    @property
    def included(self) -> tuple["Scope", ...]:
        """All that it includes, from the least."""
        return tuple(scope for scope in Scope if self.includes(scope))


ScopeWord = Annotated[Scope | str, WordOf(Scope)]
