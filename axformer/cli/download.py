"""``axformer download`` and ``axformer trace``: the files of a finished job, and the trials of any job."""

import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

import typer

from axformer.cli.display import count
from axformer.cli.remote import JobArgument, JsonOption, bar, notes, output, service_for
from axformer.cli.words import failure
from axformer.client import Artifact, Client
from axformer.client.downloads import choose
from axformer.client.errors import ServiceError


def download(
    job: JobArgument,
    to: Annotated[
        Path | None, typer.Option("--output", help="Directory; by default one named after the job's id.")
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option(help="A file, for example plan.json or artifact.tar.gz; may be repeated.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Download a finished job's files, each verified by its SHA-256. An interrupted download continues where it stopped."""
    with service_for(job) as (client, job):
        directory = to or Path(job)
        chosen = choose(_files(client, job), name)
        with bar(notes(), "Downloading", sum(artifact.bytes for artifact in chosen)) as on_progress:
            paths = client.download(job, directory, [artifact.name for artifact in chosen], on_progress)
    if as_json:
        sys.stdout.write(json.dumps([str(path) for path in paths], indent=1) + "\n")
        return
    size = sum(artifact.bytes for artifact in chosen) / 1e6
    output().print(f"{count(len(paths), 'file')}, {size:,.1f} MB, in {directory}/", soft_wrap=True)


def _files(client: Client, job_id: str) -> list[Artifact]:
    """The job's files; without any, an error says why."""
    artifacts = client.artifacts(job_id)
    if not artifacts:
        job = client.job(job_id)
        if job.has_succeeded:
            raise ServiceError(f"the files of job {job_id} are past retention; only its report and trace are kept")
        reason = failure(job) if job.has_ended else f"job {job_id} is {job.state}; wait with: axformer watch {job_id}"
        raise ServiceError(f"there are no files: {reason}")
    return artifacts


def trace(
    job: JobArgument,
    form: Annotated[Literal["jsonl", "csv"], typer.Option("--format", help="The format to write.")] = "jsonl",
    to: Annotated[Path | None, typer.Option("--output", help="File to write; by default standard output.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format jsonl: one object per line.")] = False,
) -> None:
    """Print or write the trials of a job so far."""
    form = "jsonl" if as_json else form
    with service_for(job) as (client, job):
        if to is not None:
            client.save_trace(job, to, form)
            return
        # The whole trace is read first, since printed lines cannot be taken back if the connection breaks.
        with TemporaryDirectory() as directory:
            whole = client.save_trace(job, Path(directory) / "trace", form)
            with whole.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.flush()
