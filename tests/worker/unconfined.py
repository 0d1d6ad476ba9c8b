"""The work on a job in a thread of the test, over the same lines, without restrictions.

What it costs to start a process is saved where the restrictions are not what is tested. The confined process has tests of its
own in ``sandbox/``, and real workers always have it.
"""

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from store.settings import Settings
from worker.sandbox.lines import PipeEnd
from worker.sandbox.work import serve

_HELD_SECONDS = 180.0
"""For a worker to do something about its process, on a loaded machine."""


class _Theirs(PipeEnd):
    """The lines of a process, which may be held where it looks for messages."""

    def poll(self, seconds: float = 0.0) -> bytes | None:
        return super().poll(_HELD_SECONDS if Unconfined.is_held() else seconds)


def _never() -> bool:
    return False


class Unconfined:
    """See :class:`worker.sandbox.process.Process`. It ends at its next look at the worker."""

    is_held: Callable[[], bool] = staticmethod(_never)

    def __init__(self, directory: Path, settings: Settings) -> None:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self.lines = PipeEnd(ours_in, ours_out)
        os.write(
            theirs_out, json.dumps({"type": "restrictions", "refused": {"root": "it is a thread"}}).encode() + b"\n"
        )
        self._theirs = _Theirs(theirs_in, theirs_out)
        self._thread = threading.Thread(target=self._serve, name="unconfined")
        self._thread.start()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> str:
        self.lines.close()
        self._thread.join()
        return "as it was told to"

    def _serve(self) -> None:
        try:
            serve(self._theirs)
        finally:
            with suppress(OSError):
                self._theirs.close()


@contextmanager
def held(has_come: Callable[[], bool], act: Callable[[], None]) -> Iterator[None]:
    """Act as soon as something has come, and hold the process from then on: work that is quicker than its worker has a middle
    too."""
    acted = threading.Event()

    def is_held() -> bool:
        if not acted.is_set() and has_come():
            acted.set()
            act()
        return acted.is_set()

    Unconfined.is_held = staticmethod(is_held)
    try:
        yield
    finally:
        Unconfined.is_held = staticmethod(_never)
    assert acted.is_set(), "the process ended before its middle"
