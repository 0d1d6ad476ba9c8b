"""The migrations make the tables that the code expects, can be taken back, and do not get in each other's way."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from alembic import command
from psycopg.types.json import Jsonb
from pydantic import SecretStr
from sqlalchemy import select

from api.views.jobs import job_read
from axformer.plan.trial import Phase, Trial, Verdict
from axformer.wire.analyses import AnalysisRun
from axformer.wire.run import SettledRun
from store import locks
from store.migrate import alembic_config, migrate, newest_revision
from store.repositories import claims, jobs, keys, leases, teams
from store.session import make_engine, make_sessions, session_scope
from store.settings import Settings
from store.tables.jobs import Job
from store.tables.schema import metadata
from tests.specs import spec_of


@pytest.fixture
def bare(bare_database_url: str) -> Settings:
    """Settings for a database without tables."""
    return Settings(database_url=SecretStr(bare_database_url))


def tables(url: str) -> set[str]:
    """The tables there are, without alembic's own, and without that of version 0.2.0 which its processes still fill."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return {name for (name,) in rows} - {"alembic_version", "outbox"}


def fill(settings: Settings) -> None:
    """Put a row in most tables."""
    engine = make_engine(settings)
    with session_scope(make_sessions(engine)) as session:
        team = teams.create_team(session, "crew")
        keys.create_key(session, team.id, "laptop")
        for config in ({}, {"order": "search"}, {"order": "random"}):
            jobs.create_job(session, jobs.NewJob(team.id, "job", spec_of(config=config)))
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


def test_the_schema_alone_names_every_table(bare: Settings) -> None:
    """As alembic imports it, without the rest of the service."""
    migrate(bare)
    told = "from store.tables.schema import metadata; print(*sorted(metadata.tables))"
    known = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout.split()
    assert set(known) == tables(bare.database_url.get_secret_value().replace("+psycopg", ""))


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


@pytest.mark.slow
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


RELEASED = "8d41f6c2b7e9"
"""The revision of 0.2.0."""
OLD_KNOBS = {
    "axformer": {"method": "axformer", "seed": 3, "confirm": 0.0, "within_points": None, "target_size": None}
    | {
        "target_speedup": None,
        "evaluate_in": "float32",
        "accept_poor_model": False,
        "max_length": 64,
        "batch_tokens": None,
    }
    | {"cache_budget": None, "calibrate_rows": None, "refine_margin": 1.1, "majority_fraction": 0.5, "tolerance": None}
    | {
        "helped_reference": "current",
        "ties_help": False,
        "hard_attention": True,
        "attention_top_k": 30,
        "task_name": None,
    }
    | {"neuron_group_size": None, "neuron_search": "groups", "neuron_groups": "contiguous", "order": "auto"}
    | {"explicit_order": [], "inspect_layers_first": False, "coarse_margin": 1.0, "safeguard": "folds"}
    | {"safeguard_folds": 5, "precision": "float32", "refit": False, "non_inferiority": None, "early_decision": True},
    "compress": {"method": "compress", "seed": 0, "confirm": 0.8, "within_points": 1.0, "target_size": None}
    | {"target_speedup": None, "evaluate_in": "float32", "accept_poor_model": False, "max_length": None, "polish": 0}
    | {"batch_tokens": None, "cache_budget": None, "calibrate_rows": None, "budgets": [0.9, 0.5], "cost": "operations"}
    | {"repair": "refit", "leaving": "brain_surgeon", "table_rows": 128},
}
"""Every knob as jobs of 0.2.0 keep them, with its value."""
MODEL, ROWS = {"uri": "hf://acme/bert", "sha256": "0" * 64}, {"uri": "s3://acme/dev.csv", "columns": {"text": "review"}}


@pytest.fixture
def released(bare: Settings, bare_database_url: str) -> Iterator[psycopg.Connection]:
    """A database of 0.2.0 with a team."""
    command.upgrade(alembic_config(bare), RELEASED)
    with psycopg.connect(bare_database_url, autocommit=True) as connection:
        connection.execute("INSERT INTO teams (id, name) VALUES ('team', 'crew')")
        yield connection


def make_job(connection: psycopg.Connection, job_id: str, spec: Mapping[str, object], **columns: object) -> None:
    """A job of 0.2.0, with these columns."""
    given = {"id": job_id, "team_id": "team", "name": "job", "state": "queued", "labels": Jsonb({})}
    given |= {"priority": 0, "attempt": 0, "max_attempts": 3, "fence": 0, "event_count": 0, "spec": Jsonb(spec)}
    given |= columns
    names, places = ", ".join(given), ", ".join(f"%({name})s" for name in given)
    connection.execute(f"INSERT INTO jobs ({names}) VALUES ({places})", given)


def run_spec(**parts: object) -> dict[str, object]:
    """What a job of 0.2.0 does: its run as it was posted, and what that means."""
    settled = {"preset": None, "config": None, "finetune": None, "forms": ["compact"]}
    run = {"checkpoint": MODEL, "validation": ROWS, **parts}
    return {"run": run, **settled, **{name: part for name, part in run.items() if name in settled}}


def test_every_kind_of_job_is_read_as_before(released: psycopg.Connection, bare: Settings) -> None:
    settings = {"epochs": 2, "learning_rate": 2e-5, "teacher": False, "freeze": None}
    head = {"task": "classification", "labels": ["no", "yes"]}
    robust = {"preset": "robust", "config": OLD_KNOBS["axformer"], "forms": ["compact", "onnx"]}
    smallest = run_spec(preset="smallest", config=OLD_KNOBS["compress"], calibrate=ROWS)
    asked = {"checkpoint": MODEL, "validation": ROWS, "against": MODEL, "reports": ["cka"], "max_length": 64}
    make_job(released, "trained", run_spec(**robust, train=ROWS, finetune=settings, head=head, test=ROWS))
    make_job(released, "compressed", smallest)
    make_job(released, "export", smallest, kind="export", exported_from="compressed", upto=2)
    make_job(released, "analysis", {"run": asked}, kind="analysis")
    migrate(bare)
    engine = make_engine(bare)
    with session_scope(make_sessions(engine)) as session:
        found = {job.id: job for job in session.scalars(select(Job))}
        shown = {job_id: job_read(job) for job_id, job in found.items()}
        runs = {job_id: SettledRun.model_validate(job.spec) for job_id, job in found.items() if job_id != "analysis"}
        analysis = AnalysisRun.model_validate(found["analysis"].run)
    engine.dispose()
    assert shown["trained"].finetune == settings
    assert (shown["trained"].head, shown["trained"].test, shown["trained"].forms) == (head, ROWS, ["compact", "onnx"])
    assert (shown["trained"].config, shown["export"].calibrate) == (OLD_KNOBS["axformer"], ROWS)
    assert (shown["analysis"].against, shown["analysis"].config) == (MODEL, {"max_length": 64})
    assert (runs["trained"].knobs.method, runs["trained"].knobs.seed) == ("axformer", 3)
    assert (runs["compressed"].knobs.confirm, runs["export"].knobs) == (0.8, runs["compressed"].knobs)
    assert (analysis.reports, analysis.rows, analysis.max_length) == (["cka"], None, 64)
