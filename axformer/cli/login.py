"""``axformer login``: keep the address of the service and a key for the other commands."""

import sys
from typing import Annotated

import typer

from axformer.cli.failing import failing
from axformer.cli.remote import JsonOption, output, print_json
from axformer.client import Client, Patience
from axformer.client.address import make_address, store_address


def login(
    url: Annotated[str, typer.Argument(help="Address of the service, for example https://axformer.example.com.")],
    as_json: JsonOption = False,
) -> None:
    """Keep the address of the service and a key, readable by you alone. The key is asked for, or read from a pipe."""
    with failing():
        typed = typer.prompt("API key", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline()
        address = make_address(url, typed)
        with Client(address.url, address.api_key, patience=Patience(attempts=2)) as client:
            me = client.me()
        kept = store_address(address)
    if as_json:
        print_json(me)
        return
    output().print(
        f"You are {me.team.name} at {address.url}, with the key '{me.key.name}' ({', '.join(me.key.scopes)}).\nKept in {kept}",
        soft_wrap=True,
    )
