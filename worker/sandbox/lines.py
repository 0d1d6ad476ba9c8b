"""Lines of bounded length over a pair of pipes. Nothing but bytes is exchanged: no descriptors, no pickled objects."""

import os
import select
import time
from collections import deque
from collections.abc import Callable

LONGEST = 64 * 2**20
"""Bytes of a line. A thousand trials take some hundred kilobytes; the report of a pass that has accepted every neuron of a
large model alone takes some ten million."""
_READ_BYTES = 2**16
_MILLISECONDS = 1000
_LOOK_SECONDS = 0.05
"""How long to wait before the caller is asked whether waiting still makes sense."""

CheckStop = Callable[[], None]
"""Raises where waiting makes no sense any more."""


class LineTooLongError(Exception):
    """The other side sends a line that is longer than any should be."""


class Lines:
    """One end of the pipes. Both descriptors are its own."""

    def __init__(self, reads: int, writes: int, longest: int = LONGEST) -> None:
        self._reads = reads
        self._writes = writes
        self._longest = longest
        self._whole: deque[bytes] = deque()
        self._part = bytearray()
        os.set_blocking(writes, False)  # a side that does not read must not hold the other for ever

    def close(self) -> None:
        """Close both pipes; the other side sees the end."""
        for descriptor in (self._reads, self._writes):
            os.close(descriptor)

    def send(self, line: bytes, check_stop: CheckStop = lambda: None) -> None:
        """Send a line, given without its end.

        Args:
            line: holds no line break.
            check_stop: asked while the other side does not read.

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
        """The next line, waited for.

        Args:
            check_stop: asked for each line, so that lines which come fast do not keep it waiting, and while there is none.

        Raises:
            EOFError: the other side has ended.
            LineTooLongError: it sends one without end.
        """
        check_stop()
        while (line := self.poll(_LOOK_SECONDS)) is None:
            check_stop()
        return line

    def poll(self, seconds: float = 0.0) -> bytes | None:
        """The next line, or None if none comes whole within so many seconds; raises what :meth:`receive` raises."""
        until = time.monotonic() + seconds
        while not self._whole:
            left = max(0.0, until - time.monotonic())
            if not self._wait(self._reads, select.POLLIN, left):
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
        if len(self._part) > self._longest:
            raise LineTooLongError(f"a line of more than {self._longest} bytes")

    @staticmethod
    def _wait(descriptor: int, event: int, seconds: float) -> bool:
        poll = select.poll()
        poll.register(descriptor, event)
        return bool(poll.poll(seconds * _MILLISECONDS))
