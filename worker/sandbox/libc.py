"""Calls of the C library that Python does not offer. The launcher needs them, so this imports little."""

import ctypes
import os


def call(name: str, *arguments: object) -> int:
    """Call a function that answers with a negative number if it fails.

    Raises:
        OSError: it failed.
    """
    result: int = getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
