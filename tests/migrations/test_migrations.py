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
from store.summaries import summary_of
from store.tables.jobs import Job
from store.tables.schema import metadata
from tests.specs import spec_of


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


BEFORE_LABELS = "3c7e15a9d0b4"
"""The last revision with groups of jobs, and with several passes in a job."""
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
    command.upgrade(alembic_config(bare), BEFORE_LABELS)
    (job,) = before_one_job.execute("SELECT * FROM jobs").fetchall()
    assert (job["id"], job["state"], job["kind"], job["shown_pass"]) == ("done", "succeeded", "pass", 1)
    figures = {"done": 30, "known": 30, "seconds": 3.0, "seconds_left": 0, "min_loss": 0.25}
    assert job["progress"] == figures | {"pass_number": 6, "passes": 6}
    trials = before_one_job.execute("SELECT job_id, pass_number, seq, loss FROM trials").fetchall()
    assert trials == [{"job_id": "done", "pass_number": 1, "seq": 0, "loss": 0.25}]


@pytest.mark.slow
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
    command.downgrade(alembic_config(bare), BEFORE_LABELS)
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


@pytest.fixture
def before_labels(bare: Settings, bare_database_url: str) -> Iterator[psycopg.Connection]:
    """A database with a team, and groups of jobs as they were: two of one name, and one with a name of its own."""
    command.upgrade(alembic_config(bare), BEFORE_LABELS)
    with psycopg.connect(bare_database_url, autocommit=True, row_factory=dict_row) as connection:
        connection.execute("INSERT INTO teams (id, name) VALUES ('team', 'crew')")
        for group_id, name in (("grp_1", "margins"), ("grp_2", "seeds"), ("grp_3", "seeds")):
            connection.execute(
                "INSERT INTO groups (id, team_id, name, grid) VALUES (%s, 'team', %s, '{}')", [group_id, name]
            )
        yield connection


def make_job(connection: psycopg.Connection, job_id: str, **columns: object) -> None:
    """A job of before the labels, with these columns."""
    given = {
        "id": job_id,
        "team_id": "team",
        "name": "job",
        "state": "queued",
        "config": Jsonb({}),
        "labels": Jsonb({}),
    }
    given |= {"checkpoint": Jsonb({}), "validation": Jsonb({}), "preset": "paper", "priority": 0, "attempt": 0}
    given |= {"max_attempts": 3, "fence": 0, "event_count": 0} | columns
    names, places = ", ".join(given), ", ".join(f"%({name})s" for name in given)
    connection.execute(f"INSERT INTO jobs ({names}) VALUES ({places})", given)


def test_jobs_of_a_group_are_found_by_labels(before_labels: psycopg.Connection, bare: Settings) -> None:
    cell = {"set": "reviews", "checkpoint": 1, "setting": "low", "seed": 3}
    many = {f"label-{number}": "x" for number in range(16)}
    jobs_there: dict[str, tuple[str | None, dict[str, object], dict[str, str]]] = {
        "first": ("grp_1", cell, {"project": "a"}),
        "unseeded": ("grp_1", cell | {"seed": None}, {"setting": "mine", "group": "own"}),
        "same name": ("grp_2", cell, {}),
        "full": ("grp_1", cell, many),
        "alone": (None, {}, {"project": "a"}),
    }
    for job_id, (group_id, its_cell, labels) in jobs_there.items():
        columns = {"group_id": group_id, "cell": Jsonb(its_cell) if group_id else None, "labels": Jsonb(labels)}
        make_job(before_labels, job_id, **columns)
    migrate(bare)
    found = {row["id"]: row["labels"] for row in before_labels.execute("SELECT id, labels FROM jobs")}
    place = {"set": "reviews", "checkpoint": "1", "setting": "low", "seed": "3"}
    assert found == {
        "first": {"project": "a", "group": "margins"} | place,
        "unseeded": {"group": "own", "group-name": "margins", "setting": "mine", "set": "reviews", "checkpoint": "1"},
        "same name": {"group": "seeds (grp_2)"} | place,
        "full": many | {"group": "margins"},
        "alone": {"project": "a"},
    }
    command.downgrade(alembic_config(bare), BEFORE_LABELS)
    (job,) = before_labels.execute("SELECT labels, group_id FROM jobs WHERE id = 'first'").fetchall()
    assert job == {"labels": found["first"], "group_id": None}


def test_a_search_of_orders_becomes_a_run_in_the_order_that_was_kept(
    before_labels: psycopg.Connection, bare: Settings
) -> None:
    kept = [{"order": "top-middle-bottom", "kept": False}, {"order": "bottom-top-middle", "kept": True}]
    progress = {"done": 5, "known": 5, "seconds": 9.0, "seconds_left": 0, "base_loss": 3.0, "min_loss": 1.0}
    progress |= {"pass_number": 6, "passes": 6, "order": "bottom-middle-top"}
    searches = {
        "done": {"state": "succeeded", "shown_pass": 2, "summary": Jsonb({"orders": kept})},
        "lost": {"state": "failed", "shown_pass": 2},
        "waits": {"state": "queued", "shown_pass": 2},
    }
    config = {"order": "search", "refine_margin": 1.5}
    for job_id, columns in searches.items():
        make_job(before_labels, job_id, config=Jsonb(config), progress=Jsonb(progress), **columns)
        for pass_number, losses in ((1, (3.0, 1.0)), (2, (3.0, 2.0, 2.5))):
            add_pass(before_labels, job_id, pass_number, losses)
    make_job(
        before_labels, "plain", state="succeeded", config=Jsonb({"order": "random"}), progress=Jsonb({"passes": 1})
    )
    add_pass(before_labels, "plain", 1, (3.0,))
    migrate(bare)
    jobs_left = {
        row["id"]: row
        for row in before_labels.execute("SELECT id, state, spec->'config' AS config, progress FROM jobs")
    }
    assert {job_id: row["state"] for job_id, row in jobs_left.items()} == {
        "done": "succeeded",
        "lost": "failed",
        "waits": "queued",
        "plain": "succeeded",
    }
    assert jobs_left["done"]["config"] == config | {"order": "bottom-top-middle"}
    assert jobs_left["lost"]["config"] == jobs_left["waits"]["config"] == config
    assert jobs_left["plain"]["config"] == {"order": "random"}
    figures = {"done": 3, "known": 3, "seconds": 2.0, "seconds_left": 0, "base_loss": 3.0, "min_loss": 2.0}
    assert jobs_left["done"]["progress"] == jobs_left["lost"]["progress"] == figures
    assert jobs_left["waits"]["progress"] == figures | {"done": 5, "known": 5, "seconds": 9.0, "min_loss": 1.0}
    assert jobs_left["plain"]["progress"] == {}
    trials = before_labels.execute("SELECT job_id, seq, loss FROM trials ORDER BY job_id, seq").fetchall()
    assert [tuple(row.values()) for row in trials] == [
        *(("done", seq, loss) for seq, loss in enumerate((3.0, 2.0, 2.5))),
        *(("lost", seq, loss) for seq, loss in enumerate((3.0, 2.0, 2.5))),
        ("plain", 0, 3.0),
        *(("waits", seq, loss) for seq, loss in enumerate((3.0, 2.0, 2.5))),
    ]
    command.downgrade(alembic_config(bare), BEFORE_LABELS)
    row = before_labels.execute("SELECT count(*) AS trials, min(pass_number) AS first FROM trials").fetchone()
    assert row == {"trials": 10, "first": 1}


def add_pass(connection: psycopg.Connection, job_id: str, pass_number: int, losses: tuple[float, ...]) -> None:
    """A pass whose last trial, if there are three, is rejected."""
    for seq, loss in enumerate(losses):
        values = [job_id, pass_number, seq, loss, loss, ("base", "accept", "reject")[seq], float(seq)]
        connection.execute(
            "INSERT INTO trials (job_id, pass_number, seq, phase, loss, loss_is_bound, loss_band, samples, total,"
            " min_loss, verdict, precision, parameters, seconds)"
            " VALUES (%s, %s, %s, 'block', %s, false, 0, 1, 1, %s, %s, 'float32', 0, %s)",
            values,
        )


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
"""Every knob as jobs of before the labels kept them, with its value."""
MODEL, ROWS = {"uri": "hf://acme/bert", "sha256": "0" * 64}, {"uri": "s3://acme/dev.csv", "columns": {"text": "review"}}


def test_every_kind_of_job_is_read_as_before(before_labels: psycopg.Connection, bare: Settings) -> None:
    settings = {"epochs": 2, "learning_rate": 2e-5, "teacher": False, "freeze": None}
    head = {"task": "classification", "labels": ["no", "yes"]}
    common = {"checkpoint": Jsonb(MODEL), "validation": Jsonb(ROWS)}
    robust = {"preset": "robust", "config": Jsonb(OLD_KNOBS["axformer"]), "forms": Jsonb(["compact", "onnx"])}
    smallest = {"preset": "smallest", "config": Jsonb(OLD_KNOBS["compress"]), "calibrate": Jsonb(ROWS)}
    trained = {"train": Jsonb(ROWS), "finetune": Jsonb(settings), "head": Jsonb(head), "test": Jsonb(ROWS)}
    asked = {"config": Jsonb({"max_length": 64}), "analysis": Jsonb({"reports": ["cka"], "rows": None})}
    make_job(before_labels, "trained", **common, **robust, **trained)
    make_job(before_labels, "compressed", **common, **smallest)
    make_job(before_labels, "export", kind="export", exported_from="compressed", upto=2, **common, **smallest)
    make_job(before_labels, "analysis", kind="analysis", against=Jsonb(MODEL), forms=Jsonb([]), **common, **asked)
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
    command.downgrade(alembic_config(bare), BEFORE_LABELS)
    again = {row["id"]: row for row in before_labels.execute("SELECT * FROM jobs").fetchall()}
    assert (again["trained"]["finetune"], again["trained"]["head"], again["trained"]["against"]) == (
        settings,
        head,
        None,
    )
    assert again["compressed"]["config"] == OLD_KNOBS["compress"]
    assert (again["analysis"]["config"], again["analysis"]["forms"]) == ({"max_length": 64}, [])
    assert again["analysis"]["analysis"] == {"reports": ["cka"], "rows": None}
