"""Lines of bounded length over a pair of pipes. Only bytes are exchanged: no descriptors, no pickled objects."""

import os
import select
import time
from collections import deque
from collections.abc import Callable

LONGEST = 64 * 2**20
"""Most bytes of a line. A thousand trials take some hundred kilobytes; the report of a pass that accepted every neuron of a
large model separately takes some ten million bytes."""
_READ_BYTES = 2**16
_MILLISECONDS = 1000
_LOOK_SECONDS = 0.05
"""Seconds between calls of ``check_stop`` while waiting."""

CheckStop = Callable[[], None]
"""Raises if there is no reason to wait any longer."""


class LineTooLongError(Exception):
    """The other side sent a line longer than the limit."""


class PipeEnd:
    """One end of the pipes. It owns both descriptors."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads = reads
        self._writes = writes

        self._whole: deque[bytes] = deque()
        self._part = bytearray()
        os.set_blocking(writes, False)  # a peer that does not read must not block this side forever

    def close(self) -> None:
        """Close both pipes; the other side then reads the end of file."""
        for descriptor in (self._reads, self._writes):
            os.close(descriptor)

    def send(self, line: bytes, check_stop: CheckStop = lambda: None) -> None:
        """Send a line.

        Args:
            line: the line without its line break, and without any other.
            check_stop: called while the other side does not read.

        Raises:
            OSError: the other side has ended.
        """
        rest = memoryview(line + b"\n")
        while rest:
            try:
                rest = rest[os.write(self._writes, rest) :]
            except BlockingIOError:
                self._wait(self._writes, select.POLLOUT, _LOOK_SECONDS)
                check_stop()

    def receive(self, check_stop: CheckStop = lambda: None) -> bytes:
        """Wait for the next line.

        Args:
            check_stop: called once for each line, even if lines arrive fast, and repeatedly while there is none.

        Raises:
            EOFError: the other side has ended.
            LineTooLongError: the line exceeds the limit.
        """
        check_stop()
        while (line := self.poll(_LOOK_SECONDS)) is None:
            check_stop()
        return line

    def poll(self, seconds: float = 0.0) -> bytes | None:
        """The next line, or None if no complete line arrives in time. Raises what :meth:`receive` raises."""
        until = time.monotonic() + seconds
        while not self._whole:
            remaining = max(0.0, until - time.monotonic())
            if not self._wait(self._reads, select.POLLIN, remaining):
                return None
            self._take(os.read(self._reads, _READ_BYTES))
        return self._whole.popleft()

    def _take(self, data: bytes) -> None:
        if not data:
            raise EOFError("the other side has ended")
        self._part += data
        if b"\n" in data:
            *whole, rest = bytes(self._part).split(b"\n")
            self._whole.extend(whole)
            self._part = bytearray(rest)
        if len(self._part) > LONGEST:
            raise LineTooLongError(f"a line of more than {LONGEST} bytes")

    @staticmethod
    def _wait(descriptor: int, event: int, seconds: float) -> bool:
        poll = select.poll()
        poll.register(descriptor, event)
        return bool(poll.poll(seconds * _MILLISECONDS))
