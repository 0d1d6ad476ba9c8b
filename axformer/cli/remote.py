"""Common parts of commands for the service: a client with a person's patience, ids, tokens, progress bars, and JSON output."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from axformer.cli.characters import Terminal
from axformer.cli.failing import failing
from axformer.client import Client, Job, Patience, ServiceError
from axformer.client.address import AddressError, find_address
from axformer.plan.result_files import no_result
from axformer.wire.references import tidy

JobArgument = Annotated[
    str,
    typer.Argument(help="A job: its id, the beginning or end of it, its name, or - for the newest.", metavar="JOB"),
]
_ID = re.compile("job_[0-9a-f]{32}")
_LEAST_PART = 4
_JOBS_LOOKED_AT = 1000
_SHOWN = 3
_READ_WIDTH = 160
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
def service_for(job: str) -> Iterator[tuple[Client, str]]:
    """As :func:`service`, with the id of the job that someone means."""
    with service() as client:
        yield client, id_of(client, job)


def id_of(client: Client, job: str) -> str:
    """The id of a job: given that, its beginning or end, the job's name, or ``-`` or ``last`` for the newest.

    Raises:
        ServiceError: none of the newest jobs is meant, or more than one.
    """
    if _ID.fullmatch(job):
        return job
    is_last = job in ("-", "last")
    found = [one for one in islice(client.jobs(), 1 if is_last else _JOBS_LOOKED_AT) if is_last or _is_meant(one, job)]
    if len(found) == 1:
        return found[0].id
    if found:
        told = ", ".join(f"{one.id} ({one.name})" for one in found[:_SHOWN])
        raise ServiceError(
            f"'{job}' is the name, or a part of the id, of {len(found)} jobs: {told}; give more of the id"
        )
    if Path(job).exists():
        raise ServiceError(f"'{job}' lies here and is no job; axformer path {job} shows the models of a result")
    raise ServiceError(f"your team has no job '{job}'; axformer jobs lists those there are")


def _is_meant(job: Job, text: str) -> bool:
    digits = text.removeprefix("job_")
    is_part = len(digits) >= _LEAST_PART and (job.id.startswith(f"job_{digits}") or job.id.endswith(digits))
    return job.name == text or is_part


def result_here(source: str) -> Path | None:
    """The directory of a result on this machine; None where a job is meant.

    Raises:
        PlanError: it is a file, or a path where nothing lies.
        AddressError: no directory of that name is here, and it is not known where the service is.
    """
    path = Path(source)
    if path.is_dir():
        return path
    if path.exists() or "/" in source:
        raise no_result(path, "report.json")
    try:
        find_address()
    except AddressError as error:
        raise AddressError(f"'{source}' is no directory here, and of jobs {error}") from None
    return None


@contextmanager
def service() -> Iterator[Client]:
    """Open a client for the stored address; a refusal ends the command with a one-line message."""
    with failing(), Client(patience=_PATIENCE) as client:
        yield client


def output() -> Console:
    """The console for results, with whole lines for programs that read them."""
    is_read = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Terminal(width=_READ_WIDTH if is_read else None)


def notes() -> Console:
    """The console for messages, so that a program that reads the output sees only results."""
    return Terminal(stderr=True, soft_wrap=True)


def read_secret(name: str) -> str:
    """Read a secret from a prompt or a pipe, since every program on the machine can read command lines."""
    if sys.stdin.isatty():
        return str(typer.prompt(name, hide_input=True, err=True))
    return sys.stdin.readline().strip()


def hub_token_of(asked: bool, sources: Iterable[str | None]) -> str | None:
    """The hub token, if the user asks for a prompt, or if the environment has one and a source is on the hub."""
    if asked:
        return read_secret("Token of the model hub")
    reads_hub = any(source is not None and tidy(source).startswith(_HUB) for source in sources)
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
