"""Error handling of all commands: one line on standard error, and an exit code."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from axformer.cli.characters import Terminal
from axformer.errors import AxFormerError, InputError, first_line, is_out_of_memory

EXIT_INPUT = 2
EXIT_FAILED = 1
EXIT_MISSED = 3
"""The run ended well, and its target was not reached, or by a model of no use, or a form that was asked for is missing."""
EXIT_NOT_MET = 4
"""The run ended well, and its advice does not meet what ``--require`` asks."""


_IN_COMMANDS = (
    (r"GET /v1/jobs/(\S+)/path", r"axformer path \1 --all"),
    (r"GET /v1/jobs\b", "axformer jobs"),
    (r"GET /v1/keys\b", "axformer keys list"),
    (r"POST /v1/uploads\b", "axformer upload"),
)
"""Requests that the service's messages name, and the commands that make them."""


def _in_commands(message: str) -> str:
    for request, command in _IN_COMMANDS:
        message = re.sub(request + r"(?!/)", command, message)
    return message


@contextmanager
def failing() -> Iterator[None]:
    """End the command with ``error: ...`` if its input or a file cannot be used, and with ``failed: ...`` if its work failed.

    A reader that leaves a pipe (``| head``) is no error: who runs the command ends it quietly.
    """
    errors = Terminal(stderr=True, soft_wrap=True)
    try:
        yield
    except InputError as error:
        errors.print(f"error: {error}")
        raise typer.Exit(EXIT_INPUT) from None
    except AxFormerError as error:
        errors.print(f"failed: {_in_commands(str(error))}")
        raise typer.Exit(EXIT_FAILED) from None
    except BrokenPipeError:
        raise
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        errors.print(f"failed: not enough memory: {first_line(error)}")
        errors.print(
            "Lower batch_tokens, cache_budget or max_length (--set batch_tokens=4096), or make room on the device."
        )
        raise typer.Exit(EXIT_FAILED) from None
    except OSError as error:
        if error.filename is None:
            errors.print(f"failed: {error.strerror or error}")
            raise typer.Exit(EXIT_FAILED) from None
        place = error.filename2 or error.filename
        errors.print(f"error: '{place}' cannot be used: {error.strerror}; check the place and who may write there")
        raise typer.Exit(EXIT_INPUT) from None
