"""Teams and their keys, for the operator: ``python -m api.admin team create NAME``. Needs the service's settings."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from pydantic import ValidationError
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.orm import Session

from store.repositories.keys import create_key, revoke_key
from store.repositories.teams import create_team, find_team
from store.session import make_engine, make_sessions, session_scope
from store.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Teams and keys of the AxFormer service.", pretty_exceptions_enable=False)
team_app = typer.Typer(no_args_is_help=True, help="Teams.")
key_app = typer.Typer(no_args_is_help=True, help="Keys of teams.")
app.add_typer(team_app, name="team")
app.add_typer(key_app, name="key")

KeyName = Annotated[str, typer.Option(help="What the key is for, as a reminder.")]


@team_app.command("create")
def create(name: Annotated[str, typer.Argument(help="Unique, for people.")]) -> None:
    """Make a team with a first key, which is shown once."""
    with _store() as session:
        try:
            team = create_team(session, name)
        except IntegrityError:
            raise _refused(f"there is a team '{name}' already; key create {name} makes another key") from None
        key = create_key(session, team.id, "first").text
    typer.echo(f"team {team.id}\nkey  {key}")


@key_app.command("create")
def create_one(
    team: Annotated[str, typer.Argument(help="The team's name.")], name: KeyName = "made by api.admin"
) -> None:
    """Make another key of a team; it is shown once."""
    with _store() as session:
        found = find_team(session, team)
        if found is None:
            raise _refused(f"there is no team '{team}'; team create {team} makes it")
        key = create_key(session, found.id, name).text
    typer.echo(key)


@key_app.command("revoke")
def revoke(
    key: Annotated[str, typer.Argument(help="The key's id, which is the part between the two underscores.")],
) -> None:
    """Make a key invalid at once."""
    with _store() as session:
        if not revoke_key(session, key):
            raise _refused(f"there is no valid key with the id '{key}'")
    typer.echo(f"revoked {key}")


@contextmanager
def _store() -> Iterator[Session]:
    """A session on the database of the settings; what goes wrong with either is one line."""
    try:
        engine = make_engine(Settings.from_environment())
    except ValidationError as error:
        raise _refused("; ".join(f"{item['loc'][0]}: {item['msg']}" for item in error.errors())) from None
    try:
        with session_scope(make_sessions(engine)) as session:
            yield session
    except OperationalError as error:
        raise _refused(f"the database does not answer: {' '.join(str(error.orig).split())}") from None
    finally:
        engine.dispose()


def _refused(message: str) -> typer.Exit:
    typer.echo(message, err=True)
    return typer.Exit(2)


if __name__ == "__main__":
    app()
