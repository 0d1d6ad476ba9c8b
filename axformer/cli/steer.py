"""``axformer cancel``, ``pause``, ``resume``, ``retry`` and ``deliver``: control a job, and have its files put somewhere."""

import os
from typing import Annotated

import typer

from axformer.cli.remote import JobArgument, JsonOption, notes, output, print_json, read_secret, service_for
from axformer.client import Job
from axformer.errors import ConfigError

_VARIABLE = "AXFORMER_DELIVER_TOKEN"
DeliverOption = Annotated[
    str | None,
    typer.Option(
        "--deliver",
        metavar="URI",
        help="Where to put the result, too: s3://bucket/prefix or hf://organisation/name. "
        f"The token for it is {_VARIABLE}, or is asked for.",
    ),
]


def cancel(job: JobArgument, as_json: JsonOption = False) -> None:
    """Cancel a job: a queued one at once, a running one at its next trial."""
    with service_for(job) as (client, job):
        _tell(client.cancel(job), as_json=as_json)


def pause(job: JobArgument, as_json: JsonOption = False) -> None:
    """Pause a job at its next trial; it keeps its trace."""
    with service_for(job) as (client, job):
        _tell(client.pause(job), as_json=as_json)


def resume(job: JobArgument, as_json: JsonOption = False) -> None:
    """Resume a paused job where its trace ends."""
    with service_for(job) as (client, job):
        _tell(client.resume(job), as_json=as_json)


def retry(job: JobArgument, as_json: JsonOption = False) -> None:
    """Run a failed or cancelled job again from the start."""
    with service_for(job) as (client, job):
        error = client.job(job).error
        _tell(client.retry(job), as_json=as_json)
    if error is not None and not error.retryable:
        notes().print(f"note: it failed by what it was given ({error.message}); unless that changes it fails alike")


def _tell(changed: Job, *, as_json: bool) -> None:
    if as_json:
        print_json(changed)
    else:
        output().print(f"{changed.id} is {changed.state}", soft_wrap=True)


def deliver(
    job: JobArgument,
    uri: Annotated[
        str | None,
        typer.Argument(help="s3://bucket/prefix or hf://organisation/name; by default where it should go before."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Put a job's files into a bucket or a repository of the model hub.

    That happens now, or when the job has succeeded. It also repeats what has failed.
    """
    with service_for(job) as (client, job):
        if uri is None:
            asked = client.job(job).deliver
            if asked is None:
                raise ConfigError(f"{job} goes nowhere yet; say where: axformer deliver {job} hf://organisation/name")
            uri = asked.uri
        changed = client.deliver(job, uri, deliver_token())
    if as_json:
        print_json(changed)
    elif changed.deliver is not None:
        output().print(f"{changed.id} goes to {changed.deliver.uri}: {changed.deliver.state}", soft_wrap=True)


def deliver_token() -> str:
    """The token for the place, from the environment, a prompt or a pipe, but never from the command line."""
    return os.environ.get(_VARIABLE) or read_secret("Token for the place")
