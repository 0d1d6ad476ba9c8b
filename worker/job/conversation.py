"""The protocol between a worker and the confined process of a job.

order -> memory estimate -> go ahead -> opened -> replay, begin -> trials -> searched -> trained -> published. While something
takes long, the process says how far it is: working. The worker may suspend it: suspend -> suspended -> go on. It waits after a
trial, at a checkpoint of a training or after a report, so that nothing is lost if it is ended meanwhile.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from axformer.plan.trial import Trial
from axformer.wire.steps import OnStep, ignore
from worker.job.time_slice import TimeSlice
from worker.sandbox.errors import ProcessMisbehavedError
from worker.sandbox.lines import CheckStop
from worker.sandbox.messages import (
    Begin,
    GoAhead,
    GoOn,
    JobOrder,
    MemoryEstimate,
    Message,
    Opened,
    Published,
    Searched,
    StoredTrials,
    Suspend,
    Suspended,
    Trained,
    TrialMade,
    Working,
)
from worker.sandbox.sandbox import Sandbox

_REPLAY = 1000
"""Trials per message, some 300 bytes each."""

M = TypeVar("M", bound=Message)


class Conversation:
    """The worker's side of the protocol. Every method raises what ``Sandbox.hear`` and ``check_stop`` raise."""

    def __init__(
        self,
        sandbox: Sandbox,
        check_stop: CheckStop,
        time_slice: TimeSlice,
        on_step: OnStep = ignore,
        flush: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            check_stop: called while waiting for the process; raises if the work must stop.
            time_slice: when the process is suspended and the job queued again.
            on_step: takes what the process does meanwhile.
            flush: writes what is pending, before a step is reported and before the job is queued again.
        """
        self._sandbox = sandbox
        self._check_stop = check_stop
        self._slice = time_slice
        self._on_step = on_step
        self._flush = flush

    def open(self, order: JobOrder, make_room: Callable[[MemoryEstimate], None]) -> Opened:
        """Have the process load the model and the data, and train a new head where there is one.

        Args:
            make_room: frees the memory that the job needs, or raises.
        """
        self._sandbox.make_ready(self._check_stop)
        self._sandbox.tell(order, self._check_stop)
        make_room(self._sandbox.hear(MemoryEstimate, self._check_stop))
        self._sandbox.tell(GoAhead(), self._check_stop)
        return self._hear(Opened)

    def begin(self, stored: Sequence[Trial]) -> None:
        """Send the trials that earlier workers stored, and have the process continue after them."""
        for start in range(0, len(stored), _REPLAY):
            self._sandbox.tell(StoredTrials(trials=tuple(stored[start : start + _REPLAY])), self._check_stop)
        self._sandbox.tell(Begin(), self._check_stop)

    def next(self) -> TrialMade | Searched:
        """What a search does next: a trial, or its end."""
        step = self._hear(TrialMade, Searched)
        assert isinstance(step, TrialMade | Searched)
        return step

    def arrived_trials(self) -> Iterator[TrialMade]:
        """The trials that have already arrived, without waiting."""
        return (message for message in self._sandbox.what_is_there() if isinstance(message, TrialMade))

    def go_on(self) -> None:
        """Resume a suspended process."""
        self._sandbox.tell(GoOn(), self._check_stop)

    def searched(self) -> Searched:
        """Wait until the stored trials are replayed, for a job without new ones."""
        return self._hear(Searched)

    def trained(self) -> None:
        """Wait until the model is trained, if the job asks for training."""
        self._hear(Trained)

    def published(self) -> Published:
        """Wait until the files are written."""
        return self._hear(Published)

    def _hear(self, *kinds: type[M]) -> M:
        """Wait for a message of one of these kinds. Report steps meanwhile, and suspend the process when its slice is over.

        Raises:
            SliceOverError: the process is suspended, and the job is queued again.
        """
        while True:
            message = self._sandbox.hear_any(self._check_stop)
            if isinstance(message, Working | TrialMade) and self._slice.is_wanted():
                self._sandbox.tell(Suspend(), self._check_stop)
            if isinstance(message, kinds):
                return message
            self._flush()
            if isinstance(message, Working):
                self._on_step(message.step)
            elif isinstance(message, Suspended) and self._slice.is_asked_for:
                self._slice.yield_to_others()
                self.go_on()
            else:
                wanted = " or ".join(kind.__name__ for kind in kinds)
                raise ProcessMisbehavedError(f"{type(message).__name__} instead of {wanted}")
