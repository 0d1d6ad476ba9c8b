"""Teams, their limits and their keys, for the operator: ``python -m api.admin team create NAME``.

Needs the service's settings.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from pydantic import ByteSize, TypeAdapter, ValidationError
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.orm import Session

from store.repositories.keys import create_key, revoke_key
from store.repositories.quotas import Limits, Use, limits_of, set_limits, use_of
from store.repositories.teams import create_team, find_team, list_teams
from store.session import make_engine, make_sessions, session_scope
from store.settings import Settings
from store.tables.teams import Team

app = typer.Typer(no_args_is_help=True, help="Teams and keys of the AxFormer service.", pretty_exceptions_enable=False)
team_app = typer.Typer(no_args_is_help=True, help="Teams.")
key_app = typer.Typer(no_args_is_help=True, help="Keys of teams.")
app.add_typer(team_app, name="team")
app.add_typer(key_app, name="key")

TeamName = Annotated[str, typer.Argument(help="The team's name.")]
KeyName = Annotated[str, typer.Option(help="What the key is for, as a reminder.")]
_NO_LIMIT = "none"
_HOW = f"'{_NO_LIMIT}' takes the limit away."
_BYTES = TypeAdapter(ByteSize)


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


@team_app.command("limit")
def limit(
    team: TeamName,
    running: Annotated[str | None, typer.Option(help=f"Jobs that workers hold at a time. {_HOW}")] = None,
    queued: Annotated[str | None, typer.Option(help=f"Posted jobs that wait. {_HOW}")] = None,
    stored: Annotated[str | None, typer.Option(help=f"Bytes of uploads and artifacts, as in 20GB. {_HOW}")] = None,
) -> None:
    """Limit what a team may use; what is not named stays. What the team uses already stays too."""
    with _store() as session:
        found = _find(session, team)
        old = limits_of(session, found.id)
        new = Limits(
            old.running if running is None else _count("--running", running),
            old.queued if queued is None else _count("--queued", queued),
            old.stored_bytes if stored is None else _bytes("--stored", stored),
        )
        set_limits(session, found.id, new)
        typer.echo(_shown(found, use_of(session, found.id), new))


@team_app.command("show")
def show(team: Annotated[str | None, typer.Argument(help="The team's name; all teams without it.")] = None) -> None:
    """Show what teams use and what they may use."""
    with _store() as session:
        teams = list_teams(session) if team is None else [_find(session, team)]
        for one in teams:
            typer.echo(_shown(one, use_of(session, one.id), limits_of(session, one.id)))


@key_app.command("create")
def create_one(team: TeamName, name: KeyName = "made by api.admin") -> None:
    """Make another key of a team; it is shown once."""
    with _store() as session:
        key = create_key(session, _find(session, team).id, name).text
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


def _find(session: Session, team: str) -> Team:
    found = find_team(session, team)
    if found is None:
        raise _refused(f"there is no team '{team}'; team create {team} makes it")
    return found


def _count(option: str, text: str) -> int | None:
    if text == _NO_LIMIT:
        return None
    if not text.isdecimal():
        raise _refused(f"{option}={text} is no limit; give a whole number from 0, or {_NO_LIMIT}")
    return int(text)


def _bytes(option: str, text: str) -> int | None:
    if text == _NO_LIMIT:
        return None
    try:
        return int(_BYTES.validate_python(text))
    except ValidationError:
        raise _refused(f"{option}={text} is no limit; give bytes, as in 20GB or 512MiB, or {_NO_LIMIT}") from None


def _shown(team: Team, use: Use, limits: Limits) -> str:
    figures = [
        f"{name} {used}, no limit" if most is None else f"{name} {used} of {most}"
        for (name, used), most in zip(vars(use).items(), vars(limits).values(), strict=True)
    ]
    return f"{team.name} ({team.id}): {'; '.join(figures)}"


def _refused(message: str) -> typer.Exit:
    typer.echo(message, err=True)
    return typer.Exit(2)


if __name__ == "__main__":
    app()
