"""``axformer keys``: the keys of a team, for its admins; and ``axformer login``, which stores one for the other commands."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from axformer.cli.display import count
from axformer.cli.failing import failing
from axformer.cli.remote import JsonOption, notes, output, print_json, read_secret, service
from axformer.cli.words import NOTHING, age
from axformer.client import Client, Patience
from axformer.client.address import make_address, store_address
from axformer.client.answers import Key, NewKey
from axformer.wire.keys import GRACE_HOURS_MOST

keys = typer.Typer(
    help="List, create, rotate and revoke your team's keys; for admins.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_DAYS_MOST = 36_500
"""A hundred years. Beyond the year 9999 there is no date."""

KeyArgument = Annotated[str, typer.Argument(help="Id of a key: its part between the two underscores.", metavar="KEY")]


@keys.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List your team's keys, including those that are no longer valid."""
    with service() as client:
        listed = list(client.keys())
    if as_json:
        print_json(listed)
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for name in ("key", "name", "may", "last used", "state"):
        table.add_column(name, no_wrap=name != "name")
    for key in listed:
        used = NOTHING if key.last_used_at is None else f"{age(key.last_used_at)} ago"
        table.add_row(key.id, key.name, key.scopes[-1], used, _state(key))
    output().print(table)


@keys.command()
def create(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    scope: Annotated[str, typer.Option(help="What the key may do: read, write or admin.")] = "write",
    days: Annotated[
        int | None, typer.Option(min=1, max=_DAYS_MOST, help="Days until the key expires; by default never.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Create a key, and print it once."""
    ends = None if days is None else datetime.now(UTC) + timedelta(days=days)
    with service() as client:
        _tell(client.create_key(name, scope, ends), as_json=as_json)


@keys.command()
def rotate(
    key: KeyArgument,
    grace_hours: Annotated[
        float | None, typer.Option(min=0, max=GRACE_HOURS_MOST, help="How long the old key stays valid.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Create a key that replaces another, and print it once."""
    with service() as client:
        new_key = client.rotate_key(key, grace_hours)
        _tell(new_key, as_json=as_json)
    if not as_json and new_key.replaces.expires_at is not None:
        notes().print(f"The old key is valid until {new_key.replaces.expires_at:%Y-%m-%d %H:%M %Z}.")


@keys.command()
def revoke(
    key: KeyArgument,
    even_last: Annotated[bool, typer.Option("--even-last", help="Revoke even your team's last admin key.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Revoke a key, effective at once."""
    with service() as client:
        client.revoke_key(key, even_last=even_last)
        if as_json:
            of_team = list(client.keys())
            print_json([one for one in of_team if one.id == key])
            return
    output().print(f"{key} is revoked")


def _tell(new_key: NewKey, *, as_json: bool) -> None:
    if as_json:
        print_json(new_key)
        return
    output().print(new_key.key, soft_wrap=True)
    notes().print("The key is shown only once; store it where its program finds it.")


def _state(key: Key) -> str:
    if key.revoked_at is not None:
        return f"revoked {age(key.revoked_at)} ago"
    if key.expires_at is None:
        return "valid"
    left = (key.expires_at - datetime.now(UTC)).days
    return "expired" if key.expires_at < datetime.now(UTC) else f"valid for {count(left, 'day')}"


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
