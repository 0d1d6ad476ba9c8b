"""The migrations make the tables that the code expects, can be taken back, and do not get in each other's way."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from alembic import command
from psycopg.rows import dict_row
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
        for config in ({}, {"order": "search"}, {"order": "random"}):
            jobs.create_job(session, jobs.NewJob(team.id, "job", {"uri": "x"}, {"uri": "y"}, "paper", config))
        job = claims.claim_next(session, "worker", 60)
        assert job is not None
        base = Trial(
            seq=0,
            phase=Phase.BASE,
            element=None,
            loss=1.0,
            loss_is_bound=False,
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


BEFORE_ONE_JOB = "3f6d92b8a1e7"
"""The last revision in which each pass of a search of orders is a job of its own."""
SEARCH = Jsonb({"order": "search"})


def make_search(connection: psycopg.Connection, search_id: str, state: str, worker: str | None = None) -> None:
    """A search of orders with two of its passes, as they were: each has trials, and the search those of the best."""
    make_old_job(connection, search_id, state, SEARCH, worker=worker)
    for place, (order, loss) in enumerate((("top-middle-bottom", 0.5), ("bottom-top-middle", 0.25)), 1):
        progress = {"done": 10 * place, "known": 10 * place, "seconds": 1.5, "min_loss": loss, "known_at_first": 9}
        config = Jsonb({"order": order})
        make_old_job(connection, f"{search_id}-{place}", "succeeded", config, search_id, Jsonb(progress))
        add_trial(connection, f"{search_id}-{place}", loss)
    add_trial(connection, search_id, 0.25)


def make_old_job(
    connection: psycopg.Connection,
    job_id: str,
    state: str,
    config: Jsonb,
    parent: str | None = None,
    progress: Jsonb | None = None,
    worker: str | None = None,
) -> None:
    connection.execute(
        "INSERT INTO jobs (id, team_id, parent_id, name, state, config, progress, worker, lease_until, attempt, checkpoint,"
        " validation, preset, priority, labels, max_attempts, fence, event_count) SELECT %s, id, %s, 'job', %s, %s, %s, %s,"
        " CASE WHEN %s::text IS NOT NULL THEN now() END, 1, '{}', '{}', 'paper', 0, '{}', 3, 4, 0 FROM teams",
        [job_id, parent, state, config, progress, worker, worker],
    )


def add_trial(connection: psycopg.Connection, job_id: str, loss: float) -> None:
    connection.execute(
        "INSERT INTO trials (job_id, seq, phase, loss, loss_is_bound, loss_band, samples, total, min_loss, verdict, precision,"
        " parameters, seconds) VALUES (%s, 0, 'base', %s, false, 0, 1, 1, %s, 'base', 'float32', 0, 0)",
        [job_id, loss, loss],
    )


@pytest.fixture
def before_one_job(bare: Settings, bare_database_url: str) -> Iterator[psycopg.Connection]:
    """A database with a team in which each pass of a search is a job of its own."""
    migrate(bare)
    with psycopg.connect(bare_database_url, autocommit=True, row_factory=dict_row) as connection:
        connection.execute("INSERT INTO teams (id, name) VALUES ('team', 'crew')")
        command.downgrade(alembic_config(bare), BEFORE_ONE_JOB)
        yield connection


def test_a_finished_search_of_orders_keeps_its_trace(before_one_job: psycopg.Connection, bare: Settings) -> None:
    make_search(before_one_job, "done", "succeeded")
    migrate(bare)
    (job,) = before_one_job.execute("SELECT * FROM jobs").fetchall()
    assert (job["id"], job["state"], job["kind"], job["shown_pass"]) == ("done", "succeeded", "pass", 1)
    figures = {"done": 30, "known": 30, "seconds": 3.0, "seconds_left": 0, "min_loss": 0.25}
    assert job["progress"] == figures | {"pass_number": 6, "passes": 6}
    trials = before_one_job.execute("SELECT job_id, pass_number, seq, loss FROM trials").fetchall()
    assert trials == [{"job_id": "done", "pass_number": 1, "seq": 0, "loss": 0.25}]


@pytest.mark.parametrize(
    ("state", "worker", "then"),
    [
        ("queued", None, "queued"),
        ("running", None, "queued"),
        ("packaging", "worker", "queued"),
        ("pausing", None, "paused"),
        ("paused", None, "paused"),
        ("cancelling", None, "cancelled"),
    ],
)
def test_a_search_of_orders_that_has_not_ended_begins_again(
    before_one_job: psycopg.Connection, bare: Settings, state: str, worker: str | None, then: str
) -> None:
    make_search(before_one_job, "begun", state, worker)
    migrate(bare)
    (job,) = before_one_job.execute("SELECT * FROM jobs").fetchall()
    assert (job["state"], job["worker"], job["lease_until"], job["progress"]) == (then, None, None, None)
    assert (job["finished_at"] is not None) == (then == "cancelled")
    assert before_one_job.execute("SELECT * FROM trials").fetchall() == []
    events = before_one_job.execute("SELECT seq, type, data FROM events").fetchall()
    if state == then:
        assert events == []
        return
    assert (job["attempt"], job["fence"], job["event_count"]) == (0, 5, 1)
    reason = {} if then == "cancelled" else {"reason": "it begins again: a search of orders runs in one job now"}
    assert events == [{"seq": 1, "type": f"job.{then}", "data": {"state": then} | reason}]


def test_exports_are_named_as_such(before_one_job: psycopg.Connection, bare: Settings) -> None:
    for job_id in ("export", "pass"):
        make_old_job(before_one_job, job_id, "queued", Jsonb({"order": "random"}))
    before_one_job.execute("UPDATE jobs SET exported_from = 'gone', upto = 3 WHERE id = 'export'")
    migrate(bare)
    kinds = before_one_job.execute("SELECT id, kind FROM jobs ORDER BY id").fetchall()
    assert kinds == [{"id": "export", "kind": "export"}, {"id": "pass", "kind": "pass"}]


def test_an_older_version_can_retry_a_search_that_has_not_ended(bare: Settings, bare_database_url: str) -> None:
    migrate(bare)
    fill(bare)
    with psycopg.connect(bare_database_url, row_factory=dict_row) as connection:
        connection.execute("UPDATE jobs SET shown_pass = 2")
        connection.execute("UPDATE trials SET pass_number = 2")
        connection.execute(
            'INSERT INTO trials SELECT (jsonb_populate_record(trials, \'{"pass_number": 1, "loss": 9}\')).* FROM trials'
        )
    command.downgrade(alembic_config(bare), BEFORE_ONE_JOB)
    with psycopg.connect(bare_database_url, row_factory=dict_row) as connection:
        assert [row["loss"] for row in connection.execute("SELECT loss FROM trials")] == [1.0]
        (search,) = connection.execute("SELECT * FROM jobs WHERE config->>'order' = 'search'").fetchall()
        assert (search["state"], search["error"]["retryable"]) == ("failed", True)
        assert "retry it" in search["error"]["message"]
        assert search["status_reason"] == search["error"]["message"]
        others = connection.execute("SELECT DISTINCT state FROM jobs WHERE config = '{}'").fetchall()
    assert others == [{"state": "fetching"}]


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
