"""What a worker and the confined process of a job say to each other, and when.

order -> memory estimate -> go ahead -> opened -> replay, begin -> trials -> searched -> trained -> published. Between two
trials the worker may let the process wait: suspend -> suspended -> go on.
"""

from collections.abc import Callable, Iterator, Sequence

from axformer.plan.trial import Trial
from worker.sandbox.errors import ProcessMisbehavedError
from worker.sandbox.lines import CheckStop
from worker.sandbox.messages import (
    Begin,
    GoAhead,
    GoOn,
    MemoryEstimate,
    Opened,
    Order,
    Published,
    Replay,
    Searched,
    Suspend,
    Suspended,
    Trained,
    Tried,
)
from worker.sandbox.sandbox import Sandbox

_REPLAY = 1000
"""Trials of a message, some 300 bytes each."""


class Conversation:
    """One side of it: the worker's. Every method raises what ``Sandbox.hear`` raises, and whatever ``check_stop`` raises."""

    def __init__(self, sandbox: Sandbox, check_stop: CheckStop) -> None:
        """
        Args:
            sandbox: where the process is.
            check_stop: called while the process is waited for; raises where the work is to stop.
        """
        self._sandbox = sandbox
        self._check_stop = check_stop

    def open(self, order: Order, make_room: Callable[[MemoryEstimate], None]) -> Opened:
        """Let the process load what it is to work on.

        Args:
            order: what that is.
            make_room: makes sure that the job has the memory that it takes, or raises.
        """
        self._sandbox.make_ready(self._check_stop)
        self._sandbox.tell(order, self._check_stop)
        make_room(self._sandbox.hear(MemoryEstimate, self._check_stop))
        self._sandbox.tell(GoAhead(), self._check_stop)
        return self._sandbox.hear(Opened, self._check_stop)

    def begin(self, stored: Sequence[Trial]) -> None:
        """Hand over the trials that earlier workers have stored, and let the process go on behind them."""
        for start in range(0, len(stored), _REPLAY):
            self._sandbox.tell(Replay(trials=tuple(stored[start : start + _REPLAY])), self._check_stop)
        self._sandbox.tell(Begin(), self._check_stop)

    def next_step(self) -> Tried | Suspended | Searched:
        """What comes next of a search: a trial, that the process waits since it was suspended, or that no trial follows."""
        message = self._sandbox.hear_any(self._check_stop)
        if not isinstance(message, Tried | Suspended | Searched):
            raise ProcessMisbehavedError(f"{type(message).__name__} while it searches")
        return message

    def arrived_trials(self) -> Iterator[Tried]:
        """The trials that have arrived by now; nothing is waited for."""
        return (message for message in self._sandbox.what_is_there() if isinstance(message, Tried))

    def suspend(self) -> None:
        """Let the process wait after the trial at which it is."""
        self._sandbox.tell(Suspend(), self._check_stop)

    def go_on(self) -> None:
        """Let a suspended process go on."""
        self._sandbox.tell(GoOn(), self._check_stop)

    def searched(self) -> Searched:
        """Wait until the stored trials have been replayed where none is to follow."""
        return self._sandbox.hear(Searched, self._check_stop)

    def trained(self) -> None:
        """Wait until the model is trained, where it is to be."""
        self._sandbox.hear(Trained, self._check_stop)

    def published(self) -> Published:
        """Wait until the files are there."""
        return self._sandbox.hear(Published, self._check_stop)
