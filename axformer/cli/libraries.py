"""Large libraries: faster imports, and no words of their own in the display of a pass."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def without_collection() -> Iterator[None]:
    """Turn garbage collection off, which takes a tenth of the time that large libraries take to be imported, and large files to
    be read, and finds nothing.

    Objects created inside the ``with`` block are excluded from later collections.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def silence_libraries() -> None:
    """Turn off progress bars and transformers' warnings, but not its errors."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]


def ready(device: str, output: Path | None = None) -> str:
    """Get ready to compute: silence the libraries, and check that there is nothing at the place of the output.

    Returns:
        The device by PyTorch's name.

    Raises:
        InputError: there is something, or no such device.
    """
    with without_collection():
        from axformer.artifact import check_target
        from axformer.devices import resolve_device

    silence_libraries()
    if output is not None:
        check_target(output)
    return resolve_device(device)
