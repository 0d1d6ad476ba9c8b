"""Common parts of commands for the service: a client with a person's patience, ids, and JSON output."""

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
LISTED_MOST = 1_000_000
"""Most entries of a list that may be asked for."""
JsonOption = Annotated[bool, typer.Option("--json", help="Print the service's answer as JSON.")]

_PATIENCE = Patience(attempts=5, longest_wait=8.0)
"""A person is waiting, so retries last a few seconds only. Commands that follow a job are as patient as any client."""


@contextmanager
def service() -> Iterator[Client]:
    """Open a client for the stored address; a refusal ends the command with a one-line message."""
    with failing(), Client(patience=_PATIENCE) as client:
        yield client


def output() -> Console:
    """The console for results."""
    return Console(highlight=False, markup=False)


def notes() -> Console:
    """The console for messages, so that a program that reads the output sees only results."""
    return Console(stderr=True, highlight=False, soft_wrap=True, markup=False)


def read_secret(name: str) -> str:
    """Read a secret from a prompt or a pipe, since every program on the machine can read command lines."""
    if sys.stdin.isatty():
        return str(typer.prompt(name, hide_input=True, err=True))
    return sys.stdin.readline().strip()


def print_json(answer: BaseModel | Sequence[BaseModel]) -> None:
    """Print an answer, or a list of them."""
    print_plain(_plain(answer) if isinstance(answer, BaseModel) else [_plain(one) for one in answer])


def print_plain(content: Any) -> None:
    """Print what JSON can hold."""
    sys.stdout.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _plain(answer: BaseModel) -> Any:
    return answer.model_dump(mode="json")
