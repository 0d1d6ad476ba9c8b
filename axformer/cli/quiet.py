"""Keep libraries from writing over the display of a pass."""

from transformers.utils import logging


def silence_libraries() -> None:
    """No progress bars and no warnings of transformers; its errors stay."""
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
