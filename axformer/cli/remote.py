"""Common parts of commands for the service: a client with a person's patience, ids, tokens, progress bars, and JSON output."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from axformer.cli.failing import failing
from axformer.client import Client, Patience

JobArgument = Annotated[str, typer.Argument(help="Id of a job, as printed by submit and jobs.", metavar="JOB")]
_HUB_VARIABLE, _HUB = "AXFORMER_HUB_TOKEN", "hf://"
LISTED_MOST = 1_000_000
"""Most entries of a list that may be asked for."""
JsonOption = Annotated[bool, typer.Option("--json", help="Print the service's answer as JSON.")]
HubTokenOption = Annotated[
    bool,
    typer.Option(
        "--hub-token",
        help="Ask for a token of the model hub, or read one from a pipe. "
        f"Without asking: {_HUB_VARIABLE}, for {_HUB} references.",
    ),
]

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


def hub_token_of(asked: bool, sources: Iterable[str | None]) -> str | None:
    """The hub token, if the user asks for a prompt, or if the environment has one and a source is on the hub."""
    if asked:
        return read_secret("Token of the model hub")
    reads_hub = any(source is not None and source.startswith(_HUB) for source in sources)
    return os.environ.get(_HUB_VARIABLE) or None if reads_hub else None


@contextmanager
def bar(console: Console, words: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar while the block runs, on terminals; yields the function to call with the size of each piece."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task(words, total=total)
        yield lambda added: shown.advance(task, added)


def print_json(answer: BaseModel | Sequence[BaseModel]) -> None:
    """Print an answer, or a list of them."""
    print_plain(_plain(answer) if isinstance(answer, BaseModel) else [_plain(one) for one in answer])


def print_plain(content: Any) -> None:
    """Print what JSON can hold."""
    sys.stdout.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _plain(answer: BaseModel) -> Any:
    return answer.model_dump(mode="json")
