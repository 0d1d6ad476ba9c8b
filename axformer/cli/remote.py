"""What commands that speak with the service share: a client with the patience of a person, ids, and JSON."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from rich.console import Console

from axformer.cli.failing import failing
from axformer.client import Client, Patience

JobArgument = Annotated[str, typer.Argument(help="Id of a job, as printed by submit and jobs.", metavar="JOB")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the service's answer as JSON.")]

_PATIENCE = Patience(attempts=5, longest_wait=8.0)
"""Someone sits and waits: a few seconds are enough to outlast a hiccup. What follows a job is as patient as any client."""


@contextmanager
def service() -> Iterator[Client]:
    """A client of the service that is logged in to; what it refuses ends the command with one line."""
    with failing(), Client(patience=_PATIENCE) as client:
        yield client


def output() -> Console:
    """Where results go."""
    return Console(highlight=False)


def notes() -> Console:
    """Where messages go, so that a program that reads the output sees results only."""
    return Console(stderr=True, highlight=False, soft_wrap=True, markup=False)


def read_secret(name: str) -> str:
    """Read a secret from a prompt or a pipe: every program on the machine can read a command line."""
    if sys.stdin.isatty():
        return str(typer.prompt(name, hide_input=True, err=True))
    return sys.stdin.readline().strip()


def print_json(answer: BaseModel | Sequence[BaseModel]) -> None:
    """Print an answer, or a list of them."""
    content: Any = _plain(answer) if isinstance(answer, BaseModel) else [_plain(one) for one in answer]
    sys.stdout.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _plain(answer: BaseModel) -> Any:
    return answer.model_dump(mode="json")
