"""``axformer login``: store the address of the service and a key for the other commands."""

from typing import Annotated

import typer

from axformer.cli.failing import failing
from axformer.cli.remote import JsonOption, output, print_json, read_secret
from axformer.client import Client, Patience
from axformer.client.address import make_address, store_address


def login(
    url: Annotated[str, typer.Argument(help="Address of the service, for example https://axformer.example.com.")],
    as_json: JsonOption = False,
) -> None:
    """Store the address of the service and a key, readable by you alone. The command asks for the key, or reads it from a
    pipe."""
    with failing():
        address = make_address(url, read_secret("API key"))
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
