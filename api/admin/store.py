"""Common parts of the operator's commands: the database of the settings, and one-line error messages."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from pydantic import ValidationError
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from api.errors import ApiError
from axformer.errors import reason_of
from store.repositories.teams import find_team
from store.session import make_engine, make_sessions, session_scope
from store.settings import Settings
from store.tables.teams import Team

TeamName = Annotated[str, typer.Argument(help="The team's name.")]


@contextmanager
def store() -> Iterator[Session]:
    """Open a session on the database of the settings; any error becomes a one-line message."""
    try:
        engine = make_engine(Settings.from_environment())
    except ValidationError as error:
        raise refused("; ".join(f"{item['loc'][0]}: {reason_of(item)}" for item in error.errors())) from None
    try:
        with session_scope(make_sessions(engine)) as session:
            yield session
    except OperationalError as error:
        raise refused(f"the database does not answer: {' '.join(str(error.orig).split())}") from None
    except ApiError as error:
        raise refused(error.detail) from None
    finally:
        engine.dispose()


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
