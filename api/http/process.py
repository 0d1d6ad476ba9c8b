"""The server's Python process: tuned for many short requests, and asked to stop.

The web server waits for open connections before it notifies the app, so the app listens to the same signals.
"""

import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SWITCH_SECONDS = 0.0005
"""How long a thread may run while others wait. A request changes threads several times, and with the default of 5 ms it would
wait that long at each change while another thread is busy."""


def tune() -> None:
    """Tune the process, unless the server runs in a thread of another program."""
    if threading.current_thread() is not threading.main_thread():
        return
    sys.setswitchinterval(_SWITCH_SECONDS)
    # Present objects stay alive, and collecting over them repeatedly would delay every request.
    gc.collect()
    gc.freeze()


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def noticed(stopping: Callable[[], None]) -> Iterator[None]:
    """Call ``stopping`` when a signal asks the process to end, before the previous handler."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may listen; a server in another one is stopped by other means
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def on_signal(number: int, frame: FrameType | None) -> Any:
        stopping()
        listener = before[signal.Signals(number)]
        if callable(listener):
            listener(number, frame)

    for number in _SIGNALS:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, listener in before.items():
            signal.signal(number, listener)
