"""Teams, keys, jobs and workers, for the operator: ``python -m api.admin team create NAME``.

Needs the service's settings. Changes are in the team's audit log.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from pydantic import ByteSize, TypeAdapter, ValidationError
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.orm import Session

from api.errors import ApiError
from api.services import keys, steering
from axformer.errors import reason_of
from axformer.wire.scopes import Scope
from store.errors import StoreError
from store.repositories.audit import Operator, note
from store.repositories.deliveries import renew_secrets
from store.repositories.jobs import renew_tokens, unended_of_all
from store.repositories.keys import find_key, list_keys
from store.repositories.teams import TeamLimits, Use, create_team, find_team, limits_of, list_teams, set_limits, use_of
from store.repositories.workers import FORGOTTEN_AFTER, find_worker, living_workers
from store.session import open_sessions, session_scope
from store.settings import Settings
from store.signing import open_vault
from store.tables.jobs import Job
from store.tables.teams import ApiKey, Team

app = typer.Typer(
    no_args_is_help=True, help="Teams, keys, jobs and workers of the AxFormer service.", pretty_exceptions_enable=False
)
team_app = typer.Typer(no_args_is_help=True, help="Teams.")
app.add_typer(team_app, name="team")
key_app = typer.Typer(no_args_is_help=True, help="Keys of teams.")
app.add_typer(key_app, name="key")

job_app = typer.Typer(no_args_is_help=True, help="Jobs of all teams.")
app.add_typer(job_app, name="job")

worker_app = typer.Typer(no_args_is_help=True, help="Workers.")
app.add_typer(worker_app, name="worker")

secret_app = typer.Typer(no_args_is_help=True, help="The keys of the service.")
app.add_typer(secret_app, name="secret")

TeamName = Annotated[str, typer.Argument(help="The team's name.")]

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
    seconds: Annotated[str | None, typer.Option(help=f"Seconds for which workers hold one job. {_HOW}")] = None,
) -> None:
    """Limit what a team may use. Limits that are not named stay, and so does what the team already uses."""
    with store() as session:
        found = find_team_or_refuse(session, team)
        old = limits_of(session, found.id)
        new = TeamLimits(
            old.running if running is None else _count("--running", running),
            old.queued if queued is None else _count("--queued", queued),
            old.stored_bytes if stored is None else _bytes("--stored", stored),
            old.seconds if seconds is None else _count("--seconds", seconds, least=1),
        )
        set_limits(session, found.id, new)
        note(session, Operator(found.id), "team.limit", found.id)
        typer.echo(_team_line(found, use_of(session, found.id), new))


_GRANT = re.compile(r"(s3|hf)://(\*|[A-Za-z0-9][A-Za-z0-9._-]*)")


@team_app.command("grant")
def grant(
    team: TeamName,
    places: Annotated[list[str], typer.Argument(help=f"s3://BUCKET, hf://OWNER, 's3://*', 'hf://*'; or {_NO_LIMIT}.")],
) -> None:
    """Say where workers use the operator's credentials for a team: there and nowhere else. What is public needs none."""
    granted = [] if places == [_NO_LIMIT] else sorted(set(places))
    for place in granted:
        if _GRANT.fullmatch(place) is None:
            raise refused(f"'{place}' is no bucket and no owner of repositories; give s3://BUCKET or hf://OWNER")
    with store() as session:
        found = find_team_or_refuse(session, team)
        found.grants = granted
        note(session, Operator(found.id), "team.grant", *(granted or [_NO_LIMIT]))
        typer.echo(_team_line(found, use_of(session, found.id), limits_of(session, found.id)))


@team_app.command("show")
def show(team: Annotated[str | None, typer.Argument(help="The team's name; all teams without it.")] = None) -> None:
    """Show the use and the limits of teams."""
    with store() as session:
        teams = list_teams(session) if team is None else [find_team_or_refuse(session, team)]
        for one in teams:
            typer.echo(_team_line(one, use_of(session, one.id), limits_of(session, one.id)))


def _count(option: str, text: str, least: int = 0) -> int | None:
    if text == _NO_LIMIT:
        return None
    if not text.isdecimal() or int(text) < least:
        raise refused(f"{option}={text} is not a limit; give a whole number from {least}, or {_NO_LIMIT}")
    return int(text)


def _bytes(option: str, text: str) -> int | None:
    if text == _NO_LIMIT:
        return None
    try:
        return int(_BYTES.validate_python(text))
    except ValidationError:
        raise refused(f"{option}={text} is not a limit; give bytes, as in 20GB or 512MiB, or {_NO_LIMIT}") from None


def _team_line(team: Team, use: Use, limits: TeamLimits) -> str:
    figures = [
        f"{name} {used}, no limit" if (most := getattr(limits, name)) is None else f"{name} {used} of {most}"
        for name, used in vars(use).items()
    ]
    figures += [] if limits.seconds is None else [f"{limits.seconds} seconds for a job"]
    figures += [f"credentials for {' '.join(team.grants)}"] if team.grants else []
    return f"{team.name} ({team.id}): {'; '.join(figures)}"


@contextmanager
def store() -> Iterator[Session]:
    """Open a session on the database of the settings; any error becomes a one-line message."""
    try:
        settings = Settings.from_environment()
    except ValidationError as error:
        raise refused(
            "; ".join(": ".join([*map(str, item["loc"][:1]), reason_of(item)]) for item in error.errors())
        ) from None
    try:
        with open_sessions(settings) as sessions, session_scope(sessions) as session:
            yield session
    except OperationalError as error:
        raise refused(f"the database does not answer: {' '.join(str(error.orig).split())}") from None
    except ApiError as error:
        raise refused(error.detail) from None


def find_team_or_refuse(session: Session, team: str) -> Team:
    """The team of this name."""
    found = find_team(session, team)
    if found is None:
        raise refused(f"there is no team '{team}'; team create {team} makes it")
    return found


def refused(message: str) -> typer.Exit:
    """The exit of a command that failed, with its message."""
    typer.echo(message, err=True)
    return typer.Exit(2)


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


@key_app.command("create")
def create_key(
    team: TeamName, name: KeyName = "made by api.admin", scope: KeyScope = Scope.WRITE, days: Days = None
) -> None:
    """Create another key for a team; it is shown once."""
    with store() as session:
        actor = Operator(find_team_or_refuse(session, team).id)
        expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
        text = keys.create(session, actor, name, scope, expires_at).text
    typer.echo(text)


@key_app.command("list")
def list_of_team(team: TeamName) -> None:
    """Show a team's keys, the newest first."""
    with store() as session:
        found = list_keys(session, find_team_or_refuse(session, team).id, limit=_PAGE)
        for key in found.items:
            typer.echo(_key_line(key))


@key_app.command("rotate")
def rotate(key: KeyId, hours: Hours = None) -> None:
    """Replace a key by a new one, which is shown once; the old one stays valid for a while."""
    with store() as session:
        text = keys.replace(session, Settings.from_environment(), _owner(session, key), key, hours).new.text
    typer.echo(text)


@key_app.command("revoke")
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


def _key_line(key: ApiKey) -> str:
    times = {"expires": key.expires_at, "last used": key.last_used_at, "revoked": key.revoked_at}
    said = [f"{what} {when:%Y-%m-%d %H:%M}" for what, when in times.items() if when is not None]
    return f"{key.id} {key.scope} '{key.name}': {', '.join(said) or 'never used'}"


@job_app.command("list")
def list_unended() -> None:
    """Show the jobs that have not ended, those that hold a worker first."""
    now = datetime.now(UTC)
    with store() as session:
        for job, team in unended_of_all(session):
            held = (
                ""
                if job.worker is None or job.claimed_at is None
                else f" on {job.worker} for {_ago(now - job.claimed_at)}"
            )
            typer.echo(f"{job.id} {team} {job.state} (attempt {job.attempt}){held}: {job.name}")


@job_app.command("cancel")
def cancel_job(job: Annotated[str, typer.Argument(help="The job's id.")]) -> None:
    """Cancel a job of any team: a queued one at once, a running one at its next trial, or after a few seconds by force."""
    with store() as session:
        found = session.get(Job, job)
        if found is None:
            raise refused(f"there is no job '{job}'; job list shows those that have not ended")
        state = steering.cancel(session, Operator(found.team_id), job).state
    typer.echo(f"{job} is {state}")


@worker_app.command("list")
def list_workers() -> None:
    """Show the workers that were seen within a day, and which of them take no more jobs."""
    now = datetime.now(UTC)
    with store() as session:
        for worker in living_workers(session, FORGOTTEN_AFTER.total_seconds()):
            drained = ", takes no more jobs" if worker.is_draining else ""
            memory = "" if worker.memory is None else f" with {worker.memory / 1e9:.1f} GB"
            typer.echo(f"{worker.name} {worker.device}{memory}: seen {_ago(now - worker.last_seen)} ago{drained}")


@worker_app.command("drain")
def drain(worker: Annotated[str, typer.Argument(help="The worker's name.")]) -> None:
    """Let a worker end its present job and take no other, until it is started anew."""
    with store() as session:
        found = find_worker(session, worker)
        if found is None:
            raise refused(f"there is no worker '{worker}'; worker list shows them")
        found.is_draining = True
    typer.echo(f"{worker} takes no more jobs; stop it when job list shows none of its machine")


@secret_app.command("rotate")
def rotate_secret() -> None:
    """Encrypt anew what the old keys of the service have encrypted; then they may be removed from the settings."""
    with store() as session:
        settings = Settings.from_environment()
        try:
            jobs, secrets = renew_tokens(session, open_vault(settings)), renew_secrets(session, settings)
        except StoreError as error:
            raise refused(f"nothing was changed: {error}") from None
    typer.echo(f"the first key encrypts the tokens of {jobs} jobs and {secrets} webhook secrets; remove the old keys")


def _ago(passed: timedelta) -> str:
    """Whole minutes and hours, for people."""
    minutes = int(passed.total_seconds()) // 60
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


if __name__ == "__main__":
    app()
