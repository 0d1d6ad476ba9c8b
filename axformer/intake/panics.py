"""Panics of Rust libraries.

A panic arrives as a class that is not an ``Exception`` and cannot be imported, so a tokenizer whose pattern fails on a text
would end the whole process.
"""

from collections.abc import Iterator
from contextlib import contextmanager

_PANIC = "PanicException"


class LibraryPanicError(Exception):
    """A library panicked on its input; the library itself still works."""


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Turn panics inside the block into errors.

    Raises:
        LibraryPanicError: for each panic.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        raise LibraryPanicError(str(error)) from None
