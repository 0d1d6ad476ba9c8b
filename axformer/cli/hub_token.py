"""A model hub token for jobs, from a prompt or from the environment, but never from the command line."""

import os
from collections.abc import Iterable
from typing import Annotated

import typer

from axformer.cli.remote import read_secret

_VARIABLE = "AXFORMER_HUB_TOKEN"
_HUB = "hf://"

HubTokenOption = Annotated[
    bool,
    typer.Option(
        "--hub-token",
        help=f"Ask for a token of the model hub, or read one from a pipe. Without asking: {_VARIABLE}, for {_HUB} references.",
    ),
]


def hub_token_of(asked: bool, sources: Iterable[str | None]) -> str | None:
    """The hub token, if the user asks for a prompt, or if the environment has one and a source is on the hub."""
    if asked:
        return read_secret("Token of the model hub")
    reads_hub = any(source is not None and source.startswith(_HUB) for source in sources)
    return os.environ.get(_VARIABLE) or None if reads_hub else None
