"""Error handling of all commands: one line on standard error, and an exit code."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from axformer.errors import AxFormerError, InputError

EXIT_INPUT = 2
EXIT_FAILED = 1
EXIT_MISSED = 3
"""The run ended well, and its target was not reached."""


@contextmanager
def failing() -> Iterator[None]:
    """End the command with ``error: ...`` if its input cannot be used, and with ``failed: ...`` if its work failed."""
    errors = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    try:
        yield
    except InputError as error:
        errors.print(f"error: {error}")
        raise typer.Exit(EXIT_INPUT) from None
    except AxFormerError as error:
        errors.print(f"failed: {error}")
        raise typer.Exit(EXIT_FAILED) from None
