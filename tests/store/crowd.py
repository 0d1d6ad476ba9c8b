"""Several teams and their jobs on a real database, whose clock a test moves by moving all times back."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session

from axformer.wire.devices import Device
from store.abilities import Abilities
from store.repositories import claims, jobs, leases
from store.repositories.line import DEFAULT_RULES, Rules
from store.repositories.quotas import Limits, set_limits
from store.repositories.teams import create_team
from store.session import Sessions, session_scope
from store.tables.jobs import Job
from store.tables.teams import Team
from tests.store.makers import Makers

ERROR = {"code": "x", "message": "over", "retryable": False}
LEASE = 1e7
"""Seconds; longer than any test lets pass."""
_MOVE_TIMES = (
    "UPDATE jobs SET created_at = created_at - :by, waits_since = waits_since - :by, claimed_at = claimed_at - :by,"
    " started_at = started_at - :by, lease_until = lease_until - :by, queued_at = queued_at - :by",
    "UPDATE teams SET used_as_of = used_as_of - :by",
    "UPDATE turns SET ended_at = ended_at - :by",
    "UPDATE workers SET last_seen = last_seen - :by",
)


def pass_time(session: Session, seconds: float) -> None:
    """Let so many seconds pass."""
    for statement in _MOVE_TIMES:
        session.execute(text(statement.replace(":by", "make_interval(secs => :by)")), {"by": seconds})
    session.expire_all()


class Crowd:
    """Teams by short names. Every step is a transaction."""

    def __init__(self, sessions: Sessions, rules: Rules = DEFAULT_RULES) -> None:
        self.sessions = sessions
        self.rules = rules
        self.ids: dict[str, str] = {}

    def team(self, name: str, *, used: float = 0.0, limits: Limits | None = None) -> None:
        """Make a team that has used so many seconds."""
        with session_scope(self.sessions) as session:
            made = create_team(session, f"{name} {len(self.ids)}")
            session.execute(update(Team).where(Team.id == made.id).values(used_seconds=used))
            set_limits(session, made.id, limits or Limits())
        self.ids[name] = made.id

    def post(self, team: str, name: str = "job", *, waited: float = 0.0, **changes: Any) -> str:
        """Post a job that has waited for so many seconds by now."""
        with session_scope(self.sessions) as session:
            job = jobs.create_job(session, Makers(self.ids[team]).job(name=name, **changes)).job
            since = func.clock_timestamp() - func.make_interval(0, 0, 0, 0, 0, 0, waited)
            session.execute(update(Job).where(Job.id == job.id).values(waits_since=since))
        return job.id

    def claim(
        self, worker: str = "worker", device: Device = Device.ANY, machine: str | None = None, lease: float = LEASE
    ) -> Job | None:
        """The next job, claimed by a worker with this device on this machine."""
        able = Abilities(device, machine=machine)
        with session_scope(self.sessions) as session:
            return claims.claim_next(session, worker, lease, able=able, rules=self.rules)

    def end(self, job: Job) -> None:
        """End a claimed job."""
        with session_scope(self.sessions) as session:
            leases.finish_failed(session, job.id, job.fence, ERROR)

    def wait(self, seconds: float) -> None:
        """Let so many seconds pass."""
        with session_scope(self.sessions) as session:
            pass_time(session, seconds)

    def claims(self) -> list[str]:
        """Claim until there is nothing to claim; the jobs' names."""
        names = []
        while (job := self.claim()) is not None:
            names.append(job.name)
        return names

    def running(self) -> Mapping[str, int]:
        """How many jobs of each team workers hold."""
        held = select(Job.team_id, func.count()).where(Job.worker.is_not(None)).group_by(Job.team_id)
        with session_scope(self.sessions) as session:
            found = {row[0]: row[1] for row in session.execute(held)}
        return {name: found.get(team_id, 0) for name, team_id in self.ids.items()}
