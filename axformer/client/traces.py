"""The trace of a job: trial by trial, or as a file."""

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from axformer.client.connection import Connection, reading
from axformer.client.errors import ServiceError
from axformer.client.patience import Outage
from axformer.errors import InputError
from axformer.plan.trial import Trial
from axformer.wire.base import read_answer

FORMATS = {"jsonl": "application/x-ndjson", "csv": "text/csv"}
"""File suffixes and their media types."""
_CHUNK = 1 << 18
"""Bytes written at a time."""


def trials(connection: Connection, path: str, after: int) -> Iterator[Trial]:
    """The trials after a number, each once and in order, read as needed; -1 gives all.

    Raises:
        ServiceError: the service refuses, or has been away for too long.
    """
    outage = Outage(connection.patience)
    while True:
        try:
            for trial in _stream(connection, path, after):
                outage.is_over()
                after = trial.seq
                yield trial
        except ServiceError as error:
            outage.wait(error)
        else:
            return


def _stream(connection: Connection, path: str, after: int) -> Iterator[Trial]:
    asked: dict[str, Any] = {"params": {"after": after}, "headers": {"Accept": FORMATS["jsonl"]}}
    with connection.open("GET", f"{path}/trace", **asked) as answer, reading(answer):
        for line in answer.iter_lines():
            yield read_answer(Trial, line)


def save(connection: Connection, path: str, target: Path, form: str) -> Path:
    """Write the whole trace to a file, which appears once it is complete.

    Raises:
        InputError: the format is unknown, or the file cannot be written.
        ServiceError: the service refuses or does not answer.
    """
    if form not in FORMATS:
        raise InputError(f"there is no trace as '{form}'; there are {', '.join(FORMATS)}")

    incoming = target.with_name(f".{target.name}.{secrets.token_hex(4)}")

    def once() -> None:
        with connection.open("GET", f"{path}/trace", headers={"Accept": FORMATS[form]}) as answer:
            with incoming.open("wb") as file, reading(answer):
                for chunk in answer.iter_bytes(_CHUNK):
                    file.write(chunk)
            incoming.replace(target)

    try:
        connection.patience.persist(once, again=True)
    except OSError as error:
        raise InputError(f"'{target}' cannot be written: {error.strerror}") from None
    finally:
        incoming.unlink(missing_ok=True)
    return target
