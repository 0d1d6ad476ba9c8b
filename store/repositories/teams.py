"""Teams, and their quotas: running jobs, queued jobs, stored bytes.

Claims enforce the limit of running jobs (``store.repositories.line``). The transaction that adds something enforces the
others: it adds, locks the team, counts, and rolls back if the limit is exceeded, so two concurrent additions cannot both pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from store.ids import TEAM_PREFIX, new_id
from store.states import JobState
from store.tables.files import Artifact, Upload
from store.tables.jobs import Job
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


@dataclass(frozen=True)
class TeamLimits:
    """The most that a team may use; None means no limit."""

    running: int | None = None
    queued: int | None = None
    stored_bytes: int | None = None
    seconds: int | None = None
    """For which one job may hold workers."""


@dataclass(frozen=True)
class Use:
    """What a team uses now."""

    running: int
    queued: int
    stored_bytes: int


def limits_of(session: Session, team_id: str) -> TeamLimits:
    """A team's limits."""
    query = select(Team.running_limit, Team.queued_limit, Team.stored_bytes_limit, Team.seconds_limit).where(
        Team.id == team_id
    )
    return TeamLimits(*session.execute(query).one())


def set_limits(session: Session, team_id: str, limits: TeamLimits) -> None:
    """Change a team's limits, without effect on what it already uses."""
    values = {f"{name}_limit": most for name, most in vars(limits).items()}
    session.execute(update(Team).where(Team.id == team_id).values(values))


def lock_limits(session: Session, team_id: str) -> None:
    """Lock the team's limits: other transactions that count its use wait until this one ends."""
    session.execute(select(Team.id).where(Team.id == team_id).with_for_update(key_share=True)).one()


def use_of(session: Session, team_id: str) -> Use:
    """What a team uses now, including this transaction's own changes."""
    running = select(func.count()).where(Job.team_id == team_id, Job.worker.is_not(None))
    held = running.where(Job.lease_until >= func.statement_timestamp())
    return Use(session.scalars(held).one(), queued_jobs(session, team_id), stored_bytes(session, team_id))


def queued_jobs(session: Session, team_id: str) -> int:
    """Number of a team's queued jobs."""
    mine = (Job.team_id == team_id, Job.state == JobState.QUEUED)
    return session.scalars(select(func.count()).select_from(Job).where(*mine)).one()


def stored_bytes(session: Session, team_id: str) -> int:
    """Bytes of a team's uploads and artifacts."""
    uploads = select(func.coalesce(func.sum(Upload.bytes), 0)).where(Upload.team_id == team_id)
    artifacts = select(func.coalesce(func.sum(Artifact.bytes), 0)).join(Job, Job.id == Artifact.job_id)
    return int(session.scalars(uploads).one() + session.scalars(artifacts.where(Job.team_id == team_id)).one())
