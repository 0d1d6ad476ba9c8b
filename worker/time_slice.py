"""The share of a worker's time that a job has before those that wait get their turn."""

import time

from store.repositories.line import rules_of
from store.settings import Settings
from worker.context import abilities
from worker.ledger import Ledger

_REASON = "it has run for its time slice of {seconds:g} s, and another job goes first"


class SliceOverError(Exception):
    """The job is queued again and goes on later."""

    def __init__(self, fence: int) -> None:
        super().__init__("the time slice is over")
        self.fence = fence
        """That the job waits with."""


class TimeSlice:
    """Asks after each new element whether others wait, once the time is over, and not more often than there are heartbeats.

    It begins when it is made, so loading and replaying do not count: each slice brings the pass on by an element at least.
    """

    def __init__(self, ledger: Ledger, settings: Settings) -> None:
        """
        Args:
            ledger: of the running job.
            settings: of the worker, with the length of a slice; after asking in vain it goes on for a heartbeat.
        """
        self._settings = settings
        self._ledger = ledger
        self._ask_at = time.monotonic() + settings.slice_seconds

    def is_wanted(self) -> bool:
        """Whether the time is over and others wait, so that the pass must stand still to be queued if they go first."""
        if time.monotonic() < self._ask_at:
            return False
        self._ask_later()
        return self._ledger.may_others_wait(abilities(self._settings))

    def yield_to_others(self) -> None:
        """Queue the job again if another goes first. All that is found must be recorded before.

        Raises:
            SliceOverError: it is queued.
        """
        reason = _REASON.format(seconds=self._settings.slice_seconds)
        fence = self._ledger.yield_to_others(reason, abilities(self._settings), rules_of(self._settings))
        if fence is not None:
            raise SliceOverError(fence)
        self._ask_later()

    def _ask_later(self) -> None:
        self._ask_at = time.monotonic() + self._settings.heartbeat_seconds
