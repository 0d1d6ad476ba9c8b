"""Places for what takes long, such as looks into files and uploads: so many in all, and fewer for one team.

What one team does must never fill them, so that the others find one.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from api.errors import LimitReachedError, UnavailableError

_RETRY_AFTER = {"Retry-After": "5"}
_MOST_WAITING = 4
"""Requests that wait for a place at a time; each holds a thread."""


class Places:
    """Counts who is at it, in this process."""

    def __init__(self, what: str, in_all: int, of_a_team: int, wait_seconds: float = 0.0) -> None:
        """
        Args:
            what: is done there, in words, in the plural.
            in_all: places of this process.
            of_a_team: those of them that one team may take.
            wait_seconds: how long a request waits for one.
        """
        self._what, self._in_all, self._of_a_team, self._wait_seconds = what, in_all, of_a_team, wait_seconds
        self._taken: Counter[str] = Counter()
        self._waiting = 0
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, team_id: str) -> Iterator[None]:
        """Take a place while the block runs.

        Raises:
            LimitReachedError: the team has as many as it may.
            UnavailableError: all are taken.
        """
        with self._changed:
            if not self._has_room(team_id) and not self._waited(team_id):
                raise self._refusal(team_id)
            self._taken[team_id] += 1
        try:
            yield
        finally:
            with self._changed:
                self._taken -= Counter({team_id: 1})
                self._changed.notify_all()

    def _has_room(self, team_id: str) -> bool:
        return self._taken[team_id] < self._of_a_team and self._taken.total() < self._in_all

    def _waited(self, team_id: str) -> bool:
        if self._wait_seconds == 0 or self._waiting >= _MOST_WAITING:
            return False
        self._waiting += 1
        try:
            return self._changed.wait_for(lambda: self._has_room(team_id), self._wait_seconds)
        finally:
            self._waiting -= 1

    def _refusal(self, team_id: str) -> LimitReachedError | UnavailableError:
        mine = self._taken[team_id]
        if mine >= self._of_a_team:
            detail = (
                f"your team has {mine} {self._what} under way and may have {self._of_a_team}; wait until one has ended"
            )
            return LimitReachedError(detail, headers=_RETRY_AFTER, figures={"used": mine, "limit": self._of_a_team})
        detail = (
            f"{self._taken.total()} {self._what} are under way, as many as there may be; try again in a few seconds"
        )
        return UnavailableError(detail, code="busy", headers=_RETRY_AFTER)
