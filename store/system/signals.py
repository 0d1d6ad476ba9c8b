"""Signal handlers that may interrupt themselves."""

from collections.abc import Callable


def once(act: Callable[[], None]) -> Callable[..., None]:
    """A signal handler that acts at the first signal only.

    Python runs a handler between any two steps of the main thread, also in the middle of the same handler for an earlier
    signal. Anything that takes a lock, such as ``threading.Event.set``, would then wait for itself forever.
    """
    called: list[None] = []

    def handler(*_: object, **__: object) -> None:
        if not called:
            called.append(None)  # a signal between these two lines is handled whole before this one goes on
            act()

    return handler
