"""A PostgreSQL database whose clock the simulator holds, and a snapshot of all that it checks.

The store asks the server for the time, never this process. A schema before ``pg_catalog`` in the search path gives
``clock_timestamp()``, ``statement_timestamp()`` and ``now()`` the time in a table; the store's own statements run unchanged.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from pydantic import SecretStr
from sqlalchemy.engine import make_url

from store.embedded.postgres import create_database
from store.migrate import migrate
from store.session import Sessions, make_engine, make_sessions
from store.setting_groups import DatabaseSettings
from store.settings import Settings
from store.tables.schema import metadata

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
LOCK_TIMEOUT_MS = 1
"""One thread plays all parts, so whoever waits for a lock would wait for ever."""
_CLOCK = """
CREATE SCHEMA simulated;
CREATE TABLE simulated.clock (now timestamptz NOT NULL);
INSERT INTO simulated.clock VALUES ('2030-01-01T00:00:00Z');
CREATE FUNCTION simulated.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT now FROM simulated.clock';
CREATE FUNCTION simulated.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT now FROM simulated.clock';
CREATE FUNCTION simulated.now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT now FROM simulated.clock';
"""
_JOBS = "SELECT * FROM jobs ORDER BY id"
_EVENTS = "SELECT job_id, seq, type, data FROM events ORDER BY job_id, seq"
_TRIALS = "SELECT job_id, seq, loss FROM trials ORDER BY job_id, seq"
_ARTIFACTS = "SELECT job_id, count(*) AS files FROM artifacts GROUP BY job_id"
_TEAMS = "SELECT id, used_seconds, used_as_of FROM teams"
_TURNS = "SELECT team_id, seconds, ended_at FROM turns"
_FREE = "SELECT id FROM jobs FOR NO KEY UPDATE SKIP LOCKED"

Row = dict[str, Any]


@dataclass(frozen=True)
class Snapshot:
    """All committed rows at one moment."""

    now: datetime
    jobs: Mapping[str, Row]
    events: Mapping[str, Sequence[Row]]
    trials: Mapping[str, Sequence[Row]]
    files: Mapping[str, int]
    teams: Mapping[str, Row] = field(default_factory=dict)
    turns: Sequence[Row] = ()


@dataclass
class SimulatedDatabase:
    """A database, its clock and a look at it from outside."""

    sessions: Sessions
    control: psycopg.Connection[Row]
    now: datetime = BEGIN

    def advance(self, seconds: float) -> None:
        """Let time pass; the database hears of it when it is next asked for something."""
        self.now += timedelta(seconds=seconds)

    def set_clock(self) -> None:
        """Let the database's clock show what time it is."""
        self.control.execute("UPDATE simulated.clock SET now = %s", [self.now])

    def look(self) -> Snapshot:
        """Everything that is committed."""
        with self.control.pipeline():
            jobs, events, trials, artifacts, teams, turns = (
                self.control.execute(query) for query in (_JOBS, _EVENTS, _TRIALS, _ARTIFACTS, _TEAMS, _TURNS)
            )
        return Snapshot(
            now=self.now,
            jobs={row["id"]: row for row in jobs},
            events=_by_job(events),
            trials=_by_job(trials),
            files={row["job_id"]: row["files"] for row in artifacts},
            teams={row["id"]: row for row in teams},
            turns=list(turns),
        )

    def free_jobs(self) -> set[str]:
        """Jobs that no open transaction has locked."""
        with self.control.transaction(force_rollback=True):
            return {row["id"] for row in self.control.execute(_FREE)}

    def clear(self) -> None:
        """Remove every row; the clock goes on."""
        tables = sql.SQL(", ").join(sql.Identifier(table.name) for table in metadata.sorted_tables)
        self.control.execute(sql.SQL("TRUNCATE {} CASCADE").format(tables))


@contextmanager
def simulated_database(server_url: str, name: str) -> Iterator[SimulatedDatabase]:
    """A database of this name, which must not exist yet, with a simulated clock; dropped at the end."""
    create_database(server_url, name)
    url = make_url(server_url).set(database=name).render_as_string(hide_password=False)
    settings = Settings(database_url=SecretStr(url), database=DatabaseSettings(lock_timeout_ms=LOCK_TIMEOUT_MS))
    migrate(settings)
    engine = make_engine(settings)
    try:
        with psycopg.connect(url, autocommit=True, row_factory=dict_row) as control:
            control.execute(_CLOCK)
            for table in metadata.sorted_tables:
                for column in {"created_at", "waits_since", "used_as_of"} & set(table.columns.keys()):
                    default = "ALTER TABLE {} ALTER {} SET DEFAULT simulated.clock_timestamp()"
                    control.execute(sql.SQL(default).format(sql.Identifier(table.name), sql.Identifier(column)))
            path = "ALTER DATABASE {} SET search_path = simulated, pg_catalog, public"
            control.execute(sql.SQL(path).format(sql.Identifier(name)))
            control.execute("SET client_min_messages = warning")
            yield SimulatedDatabase(make_sessions(engine), control)
    finally:
        engine.dispose()
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _by_job(rows: Any) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["job_id"], []).append(row)
    return found
