"""``axformer trace``: the trials of a job, for other programs."""

import shutil
import sys
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from axformer.cli.failing import failing
from axformer.cli.remote import JobArgument, service
from axformer.errors import InputError


class Format(StrEnum):
    """The format of a written trace."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


def trace(
    job: JobArgument,
    form: Annotated[Format, typer.Option("--format", help="The format to write.")] = Format.JSONL,
    to: Annotated[Path | None, typer.Option("--output", help="File to write; by default standard output.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format jsonl: one object per line.")] = False,
) -> None:
    """Print or write the trials of a job so far."""
    form = Format.JSONL if as_json else form
    with failing():
        if form is Format.PARQUET and to is None and sys.stdout.isatty():
            raise InputError("Parquet is not for terminals; give --output FILE, or pipe it on")
    with service() as client:
        if to is not None:
            client.save_trace(job, to, form.value)
            return
        # The whole trace is read first, since printed lines cannot be taken back if the connection breaks.
        with TemporaryDirectory() as directory:
            whole = client.save_trace(job, Path(directory) / "trace", form.value)
            with whole.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.flush()
