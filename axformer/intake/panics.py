"""Panics of libraries that are written in Rust.

They come as a class of their own, which is no ``Exception`` and cannot be imported: a tokenizer whose pattern gives up on a
text would end the whole process.
"""

from collections.abc import Iterator
from contextlib import contextmanager

_PANIC = "PanicException"


class LibraryPanicError(Exception):
    """A library has given up on its input; it is not damaged by that."""


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Turn panics inside into errors.

    Raises:
        LibraryPanicError: for each panic.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        raise LibraryPanicError(str(error)) from None
