"""Teams, their limits and their keys, for the operator: ``python -m api.admin team create NAME``.

Needs the service's settings.
"""

from typing import Annotated

import typer
from pydantic import ByteSize, TypeAdapter, ValidationError
from sqlalchemy.exc import IntegrityError

from api.admin.keys import app as key_commands
from api.admin.store import TeamName, find_team_or_refuse, refused, store
from api.services import keys
from axformer.wire.scopes import Scope
from store.repositories.audit import Operator, note
from store.repositories.teams import TeamLimits, Use, create_team, limits_of, list_teams, set_limits, use_of
from store.tables.teams import Team

app = typer.Typer(no_args_is_help=True, help="Teams and keys of the AxFormer service.", pretty_exceptions_enable=False)
team_app = typer.Typer(no_args_is_help=True, help="Teams.")
app.add_typer(team_app, name="team")
app.add_typer(key_commands, name="key")

_NO_LIMIT = "none"
_HOW = f"'{_NO_LIMIT}' takes the limit away."
_BYTES = TypeAdapter(ByteSize)


@team_app.command("create")
def create(name: Annotated[str, typer.Argument(help="Unique, for people.")]) -> None:
    """Create a team with a first key, which is shown once."""
    with store() as session:
        try:
            team = create_team(session, name)
        except IntegrityError:
            raise refused(f"there is a team '{name}' already; key create {name} makes another key") from None
        key = keys.create(session, Operator(team.id), "first", Scope.ADMIN).text
    typer.echo(f"team {team.id}\nkey  {key}")


@team_app.command("limit")
def limit(
    team: TeamName,
    running: Annotated[str | None, typer.Option(help=f"Jobs that workers hold at a time. {_HOW}")] = None,
    queued: Annotated[str | None, typer.Option(help=f"Posted jobs that wait. {_HOW}")] = None,
    stored: Annotated[str | None, typer.Option(help=f"Bytes of uploads and artifacts, as in 20GB. {_HOW}")] = None,
) -> None:
    """Limit what a team may use. Limits that are not named stay, and so does what the team already uses."""
    with store() as session:
        found = find_team_or_refuse(session, team)
        old = limits_of(session, found.id)
        new = TeamLimits(
            old.running if running is None else _count("--running", running),
            old.queued if queued is None else _count("--queued", queued),
            old.stored_bytes if stored is None else _bytes("--stored", stored),
        )
        set_limits(session, found.id, new)
        note(session, Operator(found.id), "team.limit", found.id)
        typer.echo(_shown(found, use_of(session, found.id), new))


@team_app.command("show")
def show(team: Annotated[str | None, typer.Argument(help="The team's name; all teams without it.")] = None) -> None:
    """Show the use and the limits of teams."""
    with store() as session:
        teams = list_teams(session) if team is None else [find_team_or_refuse(session, team)]
        for one in teams:
            typer.echo(_shown(one, use_of(session, one.id), limits_of(session, one.id)))


def _count(option: str, text: str) -> int | None:
    if text == _NO_LIMIT:
        return None
    if not text.isdecimal():
        raise refused(f"{option}={text} is not a limit; give a whole number from 0, or {_NO_LIMIT}")
    return int(text)


def _bytes(option: str, text: str) -> int | None:
    if text == _NO_LIMIT:
        return None
    try:
        return int(_BYTES.validate_python(text))
    except ValidationError:
        raise refused(f"{option}={text} is not a limit; give bytes, as in 20GB or 512MiB, or {_NO_LIMIT}") from None


def _shown(team: Team, use: Use, limits: TeamLimits) -> str:
    figures = [
        f"{name} {used}, no limit" if most is None else f"{name} {used} of {most}"
        for (name, used), most in zip(vars(use).items(), vars(limits).values(), strict=True)
    ]
    return f"{team.name} ({team.id}): {'; '.join(figures)}"


if __name__ == "__main__":
    app()
