"""Keys of teams, for the operator: ``python -m api.admin key create TEAM``. Changes are in the team's audit log."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from sqlalchemy.orm import Session

from api.admin.store import TeamName, find_team_or_refuse, refused, store
from api.services import keys
from axformer.wire.scopes import Scope
from store.repositories.audit import Operator
from store.repositories.keys import find_key, list_keys
from store.settings import Settings
from store.tables.teams import ApiKey

app = typer.Typer(no_args_is_help=True, help="Keys of teams.")

KeyId = Annotated[str, typer.Argument(help="The key's id, which is the part between the two underscores.")]
KeyName = Annotated[str, typer.Option(help="What the key is for, as a reminder.")]
KeyScope = Annotated[Scope, typer.Option(help="What it may do; each includes the one before it.")]
Days = Annotated[float | None, typer.Option(min=0, help="Days after which it is refused; never without this.")]
Hours = Annotated[
    float | None, typer.Option(min=0, help="Hours for which the old key stays valid; a day without this.")
]
EvenLast = Annotated[bool, typer.Option("--even-last", help="Also where the team then has no key for admins.")]
_PAGE = 1000
"""Most keys that are shown; only a program creates more of them."""


@app.command("create")
def create(
    team: TeamName, name: KeyName = "made by api.admin", scope: KeyScope = Scope.WRITE, days: Days = None
) -> None:
    """Create another key for a team; it is shown once."""
    with store() as session:
        actor = Operator(find_team_or_refuse(session, team).id)
        expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
        text = keys.create(session, actor, name, scope, expires_at).text
    typer.echo(text)


@app.command("list")
def show(team: TeamName) -> None:
    """Show a team's keys, the newest first."""
    with store() as session:
        found = list_keys(session, find_team_or_refuse(session, team).id, limit=_PAGE)
        for key in found.items:
            typer.echo(_shown(key))


@app.command("rotate")
def rotate(key: KeyId, hours: Hours = None) -> None:
    """Replace a key by a new one, which is shown once; the old one stays valid for a while."""
    with store() as session:
        text = keys.replace(session, Settings.from_environment(), _owner(session, key), key, hours).new.text
    typer.echo(text)


@app.command("revoke")
def revoke(key: KeyId, even_last: EvenLast = False) -> None:
    """Revoke a key at once."""
    with store() as session:
        keys.revoke(session, _owner(session, key), key, even_last=even_last)
    typer.echo(f"revoked {key}")


def _owner(session: Session, key_id: str) -> Operator:
    found = find_key(session, key_id)
    if found is None:
        raise refused(f"there is no key with the id '{key_id}'; key list TEAM shows those there are")
    return Operator(found.team_id)


def _shown(key: ApiKey) -> str:
    times = {"expires": key.expires_at, "last used": key.last_used_at, "revoked": key.revoked_at}
    said = [f"{what} {when:%Y-%m-%d %H:%M}" for what, when in times.items() if when is not None]
    return f"{key.id} {key.scope} '{key.name}': {', '.join(said) or 'never used'}"
