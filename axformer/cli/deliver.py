"""``axformer deliver``: have the service put a job's files into a bucket or a repository."""

import os
from typing import Annotated

import typer

from axformer.cli.remote import JobArgument, JsonOption, output, print_json, read_secret, service
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
    with service() as client:
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
