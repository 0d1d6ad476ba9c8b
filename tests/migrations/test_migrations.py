"""The migrations make the tables that the code expects, can be taken back, and do not get in each other's way."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from alembic import command
from psycopg.types.json import Jsonb
from pydantic import SecretStr

from axformer.plan.trial import Phase, Trial, Verdict
from store import locks
from store.migrate import alembic_config, migrate, newest_revision
from store.repositories import claims, jobs, keys, leases, teams
from store.session import make_engine, make_sessions, session_scope
from store.settings import Settings
from store.summaries import summary_of
from store.tables.schema import metadata


@pytest.fixture
def bare(bare_database_url: str) -> Settings:
    """Settings for a database without tables."""
    return Settings(database_url=SecretStr(bare_database_url))


def tables(url: str) -> set[str]:
    """The tables there are, without alembic's own."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return {name for (name,) in rows} - {"alembic_version"}


def fill(settings: Settings) -> None:
    """Put a row in most tables."""
    engine = make_engine(settings)
    with session_scope(make_sessions(engine)) as session:
        team = teams.create_team(session, "crew")
        keys.create_key(session, team.id, "laptop")
        for config in ({}, {"order": "search"}):
            jobs.create_job(session, jobs.NewJob(team.id, "job", {"uri": "x"}, {"uri": "y"}, "paper", config))
        job = claims.claim_next(session, "worker", 60)
        assert job is not None
        base = Trial(
            seq=0,
            phase=Phase.BASE,
            element=None,
            loss=1.0,
            loss_is_bound=False,
            loss_band=0.0,
            helped=None,
            samples=1,
            total=1,
            min_loss=1.0,
            verdict=Verdict.BASE,
            precision="float32",
            parameters=0,
            seconds=0.1,
        )
        leases.add_trials(session, job.id, job.fence, [base])
    engine.dispose()


def test_migrations_and_models_agree(bare: Settings) -> None:
    migrate(bare)
    command.check(alembic_config(bare))  # raises where they do not
    assert len(tables(bare.database_url.get_secret_value().replace("+psycopg", ""))) == len(metadata.tables)


def test_up_down_and_up_again_with_data_in_it(bare: Settings, bare_database_url: str) -> None:
    migrate(bare)
    made = tables(bare_database_url)
    fill(bare)
    command.downgrade(alembic_config(bare), "base")
    assert tables(bare_database_url) == set()
    migrate(bare)
    assert tables(bare_database_url) == made
    fill(bare)


def test_without_parents_there_are_no_passes_and_all_other_jobs_stay(bare: Settings, bare_database_url: str) -> None:
    migrate(bare)
    fill(bare)
    command.downgrade(alembic_config(bare), "185d7ecc28cb")
    with psycopg.connect(bare_database_url) as connection:
        names = connection.execute("SELECT name FROM jobs").fetchall()
    assert names == [("job",), ("job",)]
    migrate(bare)
    with psycopg.connect(bare_database_url) as connection:
        assert connection.execute("SELECT count(*), count(parent_id) FROM jobs").fetchone() == (2, 0)


def test_reports_that_are_there_get_their_summary(bare: Settings, bare_database_url: str) -> None:
    migrate(bare)
    fill(bare)
    figures = {"parameters": 10, "validation": {"loss": 0.25}}
    reports = [
        {"base": figures, "pruned": figures, "removed": ["layer.0", "layer.1"], "hard_attention": [1], "config": {}},
        {"removed": []},
    ]
    with psycopg.connect(bare_database_url) as connection:
        ids = connection.execute("SELECT id FROM jobs ORDER BY id LIMIT 2").fetchall()
        for (job_id,), report in zip(ids, reports, strict=True):
            connection.execute("UPDATE jobs SET report = %s WHERE id = %s", [Jsonb(report), job_id])
    command.downgrade(alembic_config(bare), "e7a05c61b9d4")
    migrate(bare)
    with psycopg.connect(bare_database_url) as connection:
        summaries = connection.execute("SELECT summary FROM jobs ORDER BY id").fetchall()
    assert [summary for (summary,) in summaries[:2]] == [summary_of(report) for report in reports]
    assert {summary for (summary,) in summaries[2:]} == {None}


def test_several_may_migrate_at_once(bare: Settings, bare_database_url: str) -> None:
    with ThreadPoolExecutor(1) as other:
        with psycopg.connect(bare_database_url) as first:
            first.execute("SELECT pg_advisory_lock(%s)", [locks.MIGRATIONS])
            waiting = other.submit(run_alembic, bare_database_url)
            with pytest.raises(TimeoutError):
                waiting.result(timeout=3)
            assert tables(bare_database_url) == set()
        assert waiting.result(timeout=60) == 0
    assert len(tables(bare_database_url)) == len(metadata.tables)


def run_alembic(url: str) -> int:
    """``alembic upgrade head`` as a process of its own, as in a deployment."""
    bare = {"PATH": os.environ["PATH"], "DATABASE_URL": url}
    command = [sys.executable, "-m", "alembic", "upgrade", "head"]
    return subprocess.run(command, env=bare, capture_output=True, check=False).returncode


def test_the_newest_revision_is_the_one_in_the_database(bare: Settings, bare_database_url: str) -> None:
    migrate(bare)
    with psycopg.connect(bare_database_url) as connection:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    assert row == (newest_revision(),)
