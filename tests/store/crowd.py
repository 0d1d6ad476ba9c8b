"""Several teams and their jobs on a real database, whose clock stands still but for the steps of a test."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine, event, func, select, text, update
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

from axformer.wire.devices import Device
from store.repositories import claims, jobs, leases
from store.repositories.line import DEFAULT_RULES, Abilities, Rules
from store.repositories.teams import TeamLimits, create_team, set_limits
from store.session import Sessions, session_scope
from store.tables.jobs import Job
from store.tables.teams import Team
from tests.store.makers import Makers

ERROR = {"code": "x", "message": "over", "retryable": False}
LEASE = 1e7
"""Seconds; longer than any test lets pass."""
_CLOCK = """
    DROP SCHEMA IF EXISTS still CASCADE;
    CREATE SCHEMA still;
    CREATE TABLE still.clock AS SELECT pg_catalog.now() AS at;
    CREATE SEQUENCE still.looks;
    CREATE FUNCTION still.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql
        AS $$ SELECT at + nextval('still.looks') * interval '1 microsecond' FROM still.clock $$;
    CREATE FUNCTION still.statement_timestamp() RETURNS timestamptz STABLE LANGUAGE sql
        AS $$ SELECT at + (last_value + 1) * interval '1 microsecond' FROM still.clock, still.looks $$;
"""


def stop_clock(engine: Engine) -> None:
    """Let PostgreSQL's clock stand still for an engine's connections: a test moves it, and the machine's pace does not.

    Each look at it takes a microsecond, so that what is written down later is later.
    """
    if event.contains(engine, "connect", _put_still_first):
        return
    with engine.begin() as connection:
        connection.exec_driver_sql(_CLOCK)
    event.listen(engine, "connect", _put_still_first)
    engine.dispose()  # the connections that were made before


def _put_still_first(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
    connection.cursor().execute("SET search_path TO still, public, pg_catalog")
    connection.commit()


class Crowd:
    """Teams by short names. Every step is a transaction."""

    def __init__(self, sessions: Sessions, rules: Rules = DEFAULT_RULES) -> None:
        stop_clock(sessions.kw["bind"])
        self.sessions = sessions
        self.rules = rules
        self.ids: dict[str, str] = {}

    def team(self, name: str, *, used: float = 0.0, limits: TeamLimits | None = None) -> None:
        """Make a team that has used so many seconds."""
        with session_scope(self.sessions) as session:
            made = create_team(session, f"{name} {len(self.ids)}")
            account = {"used_seconds": used, "used_as_of": func.clock_timestamp()}
            session.execute(update(Team).where(Team.id == made.id).values(account))
            set_limits(session, made.id, limits or TeamLimits())
        self.ids[name] = made.id

    def post(self, team: str, name: str = "job", *, waited: float = 0.0, **changes: Any) -> str:
        """Post a job that has waited for so many seconds by now."""
        with session_scope(self.sessions) as session:
            job = jobs.create_job(session, Makers(self.ids[team]).job(name=name, **changes)).job
            since = func.clock_timestamp() - func.make_interval(0, 0, 0, 0, 0, 0, waited)
            now = func.clock_timestamp()
            session.execute(update(Job).where(Job.id == job.id).values(waits_since=since, queued_at=now))
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
            session.execute(text("UPDATE still.clock SET at = at + make_interval(secs => :by)"), {"by": seconds})

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
