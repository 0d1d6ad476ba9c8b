"""A sign of life from inside long loops: who waits for a run can tell slow from stuck.

Loops over rows and batches call :func:`beat`, and whoever runs them listens. It has no influence on a result.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[], None] | None] = ContextVar("listener", default=None)


def beat() -> None:
    """Say that the work goes on; where nobody listens, nothing happens."""
    listener = _listener.get()
    if listener is not None:
        listener()


@contextmanager
def felt_by(listener: Callable[[], None]) -> Iterator[None]:
    """Have the beats inside felt by a listener, which is called often and must be quick."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)
