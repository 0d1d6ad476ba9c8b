"""The API while the broker or the database is gone, on servers that are really stopped and started again."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from api.main import create_app
from store.embedded.postgres import start_postgres
from store.embedded.server import EmbeddedServer
from store.embedded.valkey import start_valkey
from store.migrate import migrate
from store.repositories import jobs
from store.repositories.keys import create_key
from store.repositories.teams import create_team
from store.session import make_engine, make_sessions, session_scope
from store.setting_groups import DatabaseSettings
from store.settings import Settings
from store.states import TERMINAL, JobState
from tests.integration.real_worker import JOB_SECONDS, START_SECONDS, log_of, wait_until, worker
from tests.specs import spec_of
from tests.worker.conftest import Open, Watch, opened, watch

__all__ = ["opened", "watch"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
BODY: dict[str, Any] = {"name": "job", "checkpoint": {"uri": "hf://a/b"}, "validation": {"uri": "s3://acme/b.csv"}}


@dataclass
class Parts:
    """A PostgreSQL of this test's own and the settings that name it."""

    server: EmbeddedServer
    settings: Settings

    @contextmanager
    def restarted(self) -> Iterator[None]:
        """The stopped server once more, on the port that clients know."""
        with subprocess.Popen(self.server.child.process.args) as again:  # type: ignore[arg-type] # a list
            try:
                yield
            finally:
                again.send_signal(self.server.child.stop_signal)


@pytest.fixture
def parts(server_directory: Path, tmp_path: Path, broker_url: str) -> Iterator[Parts]:
    directory = server_directory / "outage"
    server = start_postgres(directory / "postgres", directory / "postgres.log", {"fsync": "off"})
    settings = Settings(
        database_url=SecretStr(server.url),
        broker_url=SecretStr(broker_url),
        var_dir=tmp_path / "var",
        database=DatabaseSettings(pool_size=3),
    )
    made = Parts(server, settings)
    try:
        migrate(settings)
        yield made
    finally:
        made.server.stop()


def key_of(settings: Settings) -> str:
    engine = make_engine(settings)
    with session_scope(make_sessions(engine)) as session:
        key = create_key(session, create_team(session, "outage crew").id, "test").text
    engine.dispose()
    return key


REQUESTS = [
    ("POST", "/v1/jobs"),
    ("GET", "/v1/jobs"),
    ("GET", "/v1/jobs/{}"),
    ("DELETE", "/v1/jobs/{}"),
    ("POST", "/v1/jobs/cancel"),
    ("POST", "/v1/jobs/{}/cancel"),
    ("POST", "/v1/jobs/{}/pause"),
    ("POST", "/v1/jobs/{}/retry"),
    ("GET", "/v1/jobs/{}/trace"),
    ("GET", "/v1/jobs/{}/events"),
    ("GET", "/v1/jobs/{}/artifacts"),
    ("GET", "/v1/jobs/{}/deliveries"),
    ("POST", "/v1/uploads"),
    ("GET", "/v1/queue"),
    ("POST", "/v1/webhook-secrets"),
    ("GET", "/v1/metrics"),
]


def test_without_the_database_every_answer_is_503_at_once_and_after_its_return_all_goes_on(parts: Parts) -> None:
    headers = {"Authorization": f"Bearer {key_of(parts.settings)}"}
    app = create_app(parts.settings)
    with ExitStack() as restarted, TestClient(app, headers=headers, raise_server_exceptions=False) as client:
        job = client.post("/v1/jobs", json=BODY, headers={"Idempotency-Key": "first"}).json()
        parts.server.stop()
        for method, path in REQUESTS:
            content = {"files": {"file": ("a.csv", b"x")}} if path == "/v1/uploads" else {}
            if method == "POST" and path in ("/v1/jobs", "/v1/jobs/cancel"):
                content = {"json": BODY if path == "/v1/jobs" else {"states": ["queued"]}}
            begun = time.monotonic()
            answer = client.request(method, path.format(job["id"]), headers={"Idempotency-Key": "second"}, **content)
            seconds = time.monotonic() - begun
            assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable"), (method, path)
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert int(answer.headers["Retry-After"]) > 0
            assert seconds < parts.settings.database.connect_timeout_seconds
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 503
        restarted.enter_context(parts.restarted())
        wait_until(lambda: client.get("/readyz").status_code == 200, START_SECONDS, parts.server.child.log)
        assert [item["id"] for item in client.get("/v1/jobs").json()["data"]] == [job["id"]]
        assert client.post("/v1/jobs", json=BODY, headers={"Idempotency-Key": "first"}).json() == job
        second = client.post("/v1/jobs", json=BODY, headers={"Idempotency-Key": "second"})
        assert (second.status_code, "Idempotent-Replayed" in second.headers) == (202, False)


def test_a_job_posted_without_the_broker_runs_when_it_is_back(
    database_url: str, tmp_path: Path, server_directory: Path, opened: Open, watch: Watch
) -> None:
    directory = server_directory / "broker-outage"
    broker = start_valkey(directory, directory / "valkey.log")
    settings = Settings(
        database_url=SecretStr(database_url),
        broker_url=SecretStr(broker.url),
        var_dir=tmp_path / "var",
        file_roots=(opened.root, tmp_path),
        celery_queue=f"test-{tmp_path.name}",
        wake_timeout_seconds=1.0,
    )
    data = {"validation": {"uri": opened.uri("validation.jsonl")}}
    body = BODY | {"checkpoint": {"uri": opened.uri("checkpoint")}} | data
    headers = {"Authorization": f"Bearer {key_of(settings)}"}
    with TestClient(create_app(settings), headers=headers) as client, worker(settings, announce_seconds=0.2):
        program = broker.child.process.args
        broker.stop()
        answer = client.post("/v1/jobs", json=body)
        assert answer.status_code == 202
        job = f"/v1/jobs/{answer.json()['id']}"
        assert client.get(job).json()["state"] == "queued"
        assert client.get("/readyz").json()["broker"] != "ok"
        with subprocess.Popen(program) as back:  # type: ignore[arg-type] # the same port and password
            try:
                wait_until(lambda: client.get(job).json()["state"] in TERMINAL, JOB_SECONDS, log_of(settings))
                assert client.get(job).json()["state"] == "succeeded"
                assert client.get("/readyz").json()["broker"] == "ok"
            finally:
                back.terminate()


def test_a_job_its_event_and_its_delivery_are_of_one_transaction(sessions: Any, team: Any) -> None:
    webhook = {"url": "https://x.example", "events": ["job.created"]}
    new = jobs.NewJob(team.id, "job", spec_of(), webhook=webhook)
    tables = ("jobs", "events", "deliveries")
    with sessions() as session:
        made = jobs.create_job(session, new).job
        assert made.state is JobState.QUEUED
        session.rollback()
        assert [count(session, table) for table in tables] == [0, 0, 0]
    with session_scope(sessions) as session:
        jobs.create_job(session, new)
    with session_scope(sessions) as session:
        assert [count(session, table) for table in tables] == [1, 1, 1]
        stamps = {session.connection().exec_driver_sql(f"SELECT xmin::text FROM {table}").scalar() for table in tables}
    assert len(stamps) == 1


def count(session: Any, table: str) -> int:
    return int(session.connection().exec_driver_sql(f"SELECT count(*) FROM {table}").scalar())
