"""A process that is told to stop many times at once stops, and does not wait for itself."""

import signal
import sys
import threading

from store.system.processes import once


def test_a_handler_that_interrupts_itself_anywhere_does_not_wait_for_itself() -> None:
    """A signal comes at every step of the handler in turn, as if the kernel had chosen that moment."""
    steps = _interrupted(once(threading.Event().set), None)
    assert steps > 5, "the steps of the event are among them"
    for place in range(steps):
        stop = threading.Event()
        _interrupted(once(stop.set), place)
        assert stop.is_set()


def _interrupted(handler: object, place: int | None) -> int:
    """Call a handler, and once more in the middle of it. Returns the number of lines that it ran."""
    assert callable(handler)
    seen = 0

    def trace(frame: object, event: str, _: object) -> object:
        nonlocal seen
        if event == "line":
            seen += 1
            if seen - 1 == place:
                handler(signal.SIGTERM, None)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        handler(signal.SIGTERM, None)
    finally:
        sys.settrace(before)
    return seen
