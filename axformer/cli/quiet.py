"""Prevent libraries from writing into the display of a pass."""

from transformers.utils import logging


def silence_libraries() -> None:
    """Turn off progress bars and transformers' warnings, but not its errors."""
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
