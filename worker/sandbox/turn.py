"""The turn of a job's process: whether its worker wants it to wait for other jobs, or has ended."""

import time

from worker.sandbox.lines import PipeEnd
from worker.sandbox.messages import FROM_WORKER, GoOn, Message, Suspend, Suspended


class WorkersTurn:
    """Follows the messages of the worker while the process works. See :class:`axformer.surroundings.Turn`."""

    def __init__(self, lines: PipeEnd) -> None:
        self._lines = lines
        self._is_over = False
        self._waited = 0.0

    def check(self) -> None:
        """Read what has arrived. Messages other than of turns are outdated by the time they arrive, and are dropped.

        Raises:
            EOFError: the worker has ended, or has given up this job.
        """
        while (line := self._lines.poll()) is not None:
            self._is_over |= isinstance(FROM_WORKER.validate_json(line), Suspend)

    def is_over(self) -> bool:
        """Whether the worker has asked the process to wait; raises what :meth:`check` raises."""
        self.check()
        return self._is_over

    def wait(self) -> None:
        """Wait until the worker says to go on; raises what :meth:`check` raises."""
        began, self._is_over = time.monotonic(), False
        self._lines.send(Suspended().line())
        receive(self._lines, GoOn)
        self._waited += time.monotonic() - began

    def clock(self) -> float:
        """Seconds since an arbitrary start, without those that the process waited."""
        return time.monotonic() - self._waited


def receive(lines: PipeEnd, *kinds: type[Message]) -> Message:
    """Wait for the next message of one of these kinds. Others are outdated by the time they arrive, and are dropped.

    Raises:
        EOFError: the worker has ended, or has given up this job.
    """
    while True:
        message = FROM_WORKER.validate_json(lines.receive())
        if not kinds or isinstance(message, kinds):
            return message
