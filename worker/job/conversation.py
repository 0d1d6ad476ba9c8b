"""The protocol between a worker and the confined process of a job.

order -> memory estimate -> go ahead -> opened -> replay, begin -> trials -> searched -> trained -> published. While something
takes long, the process says how far it is: working, or only that it goes on: alive; one that says nothing is ended. The worker
may suspend it: suspend -> suspended -> go on. It waits after a trial, at a checkpoint of a training or after a report, so that
nothing is lost if it is ended meanwhile.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from axformer.plan.trial import Trial
from axformer.wire.steps import OnStep, ignore
from worker.job.lease import TookTooLongError
from worker.job.time_slice import TimeSlice
from worker.sandbox import messages
from worker.sandbox.errors import ProcessMisbehavedError
from worker.sandbox.lines import CheckStop
from worker.sandbox.sandbox import Sandbox

_REPLAY = 1000
"""Trials per message, some 300 bytes each."""

M = TypeVar("M", bound=messages.Message)


@dataclass(frozen=True)
class Conversation:
    """The worker's side of the protocol. Every method raises what ``Sandbox.hear`` and ``check_stop`` raise."""

    sandbox: Sandbox
    check_stop: CheckStop
    """Called while waiting for the process; raises if the work must stop."""
    time_slice: TimeSlice
    """When the process is suspended and the job queued again."""
    on_step: OnStep = ignore
    """Takes what the process does meanwhile."""
    most_silent: float = float("inf")
    """Seconds for which the process may say nothing."""
    flush: Callable[[], None] = lambda: None
    """Writes what is pending, before a step is reported and before the job is queued again."""

    def open(self, order: messages.JobOrder, make_room: Callable[[messages.MemoryEstimate], None]) -> messages.Opened:
        """Have the process load the model and the data, and train a new head where there is one.

        Args:
            make_room: frees the memory that the job needs, or raises.
        """
        self.sandbox.make_ready(self._patience())
        self.sandbox.tell(order, self._patience())
        make_room(self.sandbox.hear(messages.MemoryEstimate, self._patience()))
        self.sandbox.tell(messages.GoAhead(), self._patience())
        return self._hear(messages.Opened)

    def begin(self, stored: Sequence[Trial]) -> None:
        """Send the trials that earlier workers stored, and have the process continue after them."""
        for start in range(0, len(stored), _REPLAY):
            self.sandbox.tell(messages.StoredTrials(trials=tuple(stored[start : start + _REPLAY])), self._patience())
        self.sandbox.tell(messages.Begin(), self._patience())

    def next(self) -> messages.TrialMade | messages.Searched:
        """What a search does next: a trial, or its end."""
        step = self._hear(messages.TrialMade, messages.Searched)
        assert isinstance(step, messages.TrialMade | messages.Searched)
        return step

    def arrived_trials(self) -> Iterator[messages.TrialMade]:
        """The trials that have already arrived, without waiting."""
        return (message for message in self.sandbox.what_is_there() if isinstance(message, messages.TrialMade))

    def go_on(self) -> None:
        """Resume a suspended process."""
        self.sandbox.tell(messages.GoOn(), self._patience())

    def searched(self) -> messages.Searched:
        """Wait until the stored trials are replayed, for a job without new ones."""
        return self._hear(messages.Searched)

    def trained(self) -> None:
        """Wait until the model is trained, if the job asks for training."""
        self._hear(messages.Trained)

    def published(self) -> messages.Published:
        """Wait until the files are written."""
        self.time_slice.may_be_taken = False  # the files would be written anew
        return self._hear(messages.Published)

    def _patience(self) -> CheckStop:
        """What is called while the worker waits for a word of the process, or for it to listen.

        Raises:
            TookTooLongError: that takes longer than it may.
            TakenByForceError: it takes two slices while others wait; the job is queued again.
        """
        since = time.monotonic()

        def check() -> None:
            self.check_stop()
            silent = time.monotonic() - since
            if silent > self.most_silent:
                raise TookTooLongError(
                    f"the job's process said nothing for {self.most_silent:g} s and was ended; a tokenizer or model that needs "
                    "so long for a part of the data is damaged or made to do harm, or the machine is stuck"
                )
            if self.time_slice.is_overdue(silent):
                self.flush()
                self.time_slice.take_by_force(silent)

        return check

    def _hear(self, *kinds: type[M]) -> M:
        """Wait for a message of one of these kinds. Report steps meanwhile, and suspend the process when its slice is over.

        Raises:
            SliceOverError: the process is suspended, and the job is queued again.
        """
        while True:
            message = self.sandbox.hear_any(self._patience())
            if isinstance(message, messages.Working | messages.TrialMade) and self.time_slice.is_wanted():
                self.sandbox.tell(messages.Suspend(), self._patience())
            if isinstance(message, kinds):
                return message
            if isinstance(message, messages.Alive):
                continue
            self.flush()
            if isinstance(message, messages.Working):
                self.on_step(message.step)
            elif isinstance(message, messages.Suspended) and self.time_slice.is_asked_for:
                self.time_slice.yield_to_others()
                self.go_on()
            else:
                wanted = " or ".join(kind.__name__ for kind in kinds)
                raise ProcessMisbehavedError(f"{type(message).__name__} instead of {wanted}")
