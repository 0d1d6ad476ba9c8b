"""Imports of what is large: Python's look for garbage finds none in them, and takes a tenth of their time."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing() -> Iterator[None]:
    """Turn garbage collection off inside the ``with`` block, and exclude what was made there from later collections."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
