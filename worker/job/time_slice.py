"""Time slices: how long a job runs before waiting jobs get their turn."""

import time

from store.repositories import claims
from store.repositories.line import rules_of
from store.settings import Settings
from worker.base.context import abilities
from worker.job.lease import TookTooLongError
from worker.job.ledger import Ledger

_SLICES = 2
"""Slices without a word after which a job is taken from its process."""
_LEAST_SILENT_SECONDS = 30.0
"""However short slices are: several signs of life, and longer than most models take to load."""
_REASON = "it has run for its time slice of {seconds:g} s, and another job goes first"


class SliceOverError(Exception):
    """The job is queued again and continues later."""

    def __init__(self, fence: int) -> None:
        super().__init__("the time slice is over")
        self.fence = fence
        """The fence that the job waits with."""


class TakenByForceError(Exception):
    """The job is queued again, and the attempt counts; its process goes."""


class TimeSlice:
    """Checks while a job works whether other jobs wait, once the slice is over, at most once per heartbeat.

    The slice begins when the process first says what it does, after loading and replaying. The process waits only where its
    work is kept, so each slice brings the job on.
    """

    def __init__(self, ledger: Ledger, settings: Settings, *, is_last_attempt: bool = False) -> None:
        self._settings = settings
        self._is_last_attempt = is_last_attempt
        self._look_at = 0.0
        self.may_be_taken = True
        """Whether a process that says nothing may be ended for others; not where all its work would be lost."""
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
        fence = self._queue_again(_REASON.format(seconds=self._settings.slice_seconds))
        if fence is not None:
            raise SliceOverError(fence)
        self.is_asked_for = False
        self._ask_later()

    def is_overdue(self, silent_seconds: float) -> bool:
        """Whether the process has said nothing for two slices, and other jobs wait."""
        now = time.monotonic()
        least = max(_SLICES * self._settings.slice_seconds, _LEAST_SILENT_SECONDS)
        if not self.may_be_taken or silent_seconds < least or now < self._look_at:
            return False
        self._look_at = now + self._settings.heartbeat_seconds
        return self._ledger.may_others_wait(abilities(self._settings))

    def take_by_force(self, silent_seconds: float) -> None:
        """Queue the job again if another goes first, and count the attempt. All trials must be recorded before.

        Raises:
            TakenByForceError: the job is queued.
            TookTooLongError: this was its last attempt.
        """
        said = f"its process said nothing for {silent_seconds:.0f} s while other jobs waited"
        if self._is_last_attempt:
            raise TookTooLongError(f"{said}, and so in the attempts before")
        if self._queue_again(said, counts=True) is not None:
            raise TakenByForceError(said)

    def _queue_again(self, reason: str, *, counts: bool = False) -> int | None:
        return self._ledger.write(
            claims.yield_to_others,
            reason,
            counts=counts,
            able=abilities(self._settings),
            rules=rules_of(self._settings),
        )

    def _ask_later(self) -> None:
        self._ask_at = time.monotonic() + self._settings.heartbeat_seconds
