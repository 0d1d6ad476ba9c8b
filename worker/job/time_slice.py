"""Time slices: how long a job runs before waiting jobs get their turn."""

import time

from store.repositories import claims
from store.repositories.line import rules_of
from store.settings import Settings
from worker.base.context import abilities
from worker.job.ledger import Ledger

_REASON = "it has run for its time slice of {seconds:g} s, and another job goes first"


class SliceOverError(Exception):
    """The job is queued again and continues later."""

    def __init__(self, fence: int) -> None:
        super().__init__("the time slice is over")
        self.fence = fence
        """The fence that the job waits with."""


class TimeSlice:
    """Checks while a job works whether other jobs wait, once the slice is over, at most once per heartbeat.

    The slice begins when the process first says what it does, after loading and replaying. The process waits only where its
    work is kept, so each slice brings the job on.
    """

    def __init__(self, ledger: Ledger, settings: Settings) -> None:
        self._settings = settings
        self._ledger = ledger
        self._ask_at: float | None = None
        self.is_asked_for = False
        """Whether the process was asked to wait and has not gone on since."""

    def is_wanted(self) -> bool:
        """Whether the slice is over and other jobs wait; the process must then be suspended before the job can be queued. The
        first call begins the slice."""
        now = time.monotonic()
        if self._ask_at is None:
            self._ask_at = now + self._settings.slice_seconds
        if now < self._ask_at:
            return False
        self._ask_later()
        is_wanted = self._ledger.may_others_wait(abilities(self._settings))
        self.is_asked_for |= is_wanted
        return is_wanted

    def yield_to_others(self) -> None:
        """Queue the job again if another goes first. All trials must be recorded before.

        Raises:
            SliceOverError: the job is queued.
        """
        reason = _REASON.format(seconds=self._settings.slice_seconds)
        fence = self._ledger.write(
            claims.yield_to_others, reason, able=abilities(self._settings), rules=rules_of(self._settings)
        )
        if fence is not None:
            raise SliceOverError(fence)
        self.is_asked_for = False
        self._ask_later()

    def _ask_later(self) -> None:
        self._ask_at = time.monotonic() + self._settings.heartbeat_seconds
