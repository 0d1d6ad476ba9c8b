"""Teams."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from store.ids import TEAM_PREFIX, new_id
from store.tables.teams import Team


def create_team(session: Session, name: str) -> Team:
    """Create a team. Names are unique."""
    team = Team(id=new_id(TEAM_PREFIX), name=name)
    session.add(team)
    session.flush()
    return team


def list_teams(session: Session) -> Sequence[Team]:
    """All teams, by name."""
    return session.scalars(select(Team).order_by(Team.name)).all()


def find_team(session: Session, name: str) -> Team | None:
    """The team of this name."""
    return session.scalars(select(Team).where(Team.name == name)).one_or_none()
