"""Health, readiness and metrics."""

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr
from sqlalchemy import text
from starlette.testclient import TestClient

from api.main import create_app
from axformer import __version__
from axformer.wire.devices import Device
from store.migrate import newest_revision
from store.repositories.workers import note_successes, note_worker
from store.session import session_scope
from store.system.processes import free_port


def test_all_parts_there(client):
    told = client.get("/healthz").json()
    assert load_pem_public_key(told.pop("result_key").encode())
    assert told == {"status": "ok", "version": __version__}
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ok", "database": "ok", "migrations": "ok", "broker": "ok", "disk": "ok"}


@pytest.mark.parametrize(
    ("missing", "change"),
    [
        ("database", {"database_url": SecretStr("postgresql+psycopg://nobody@127.0.0.1:{port}/test")}),
        ("broker", {"broker_url": SecretStr("redis://127.0.0.1:{port}/0")}),
    ],
)
def test_a_missing_part_is_named(settings, missing, change):
    dead = {name: SecretStr(url.get_secret_value().format(port=free_port())) for name, url in change.items()}
    with TestClient(create_app(settings.model_copy(update=dead))) as client:
        answer = client.get("/readyz")
        assert client.get("/healthz").status_code == 200
    parts = answer.json()
    assert (answer.status_code, parts["status"]) == (503, "unavailable")
    assert "does not answer" in parts[missing]
    assert "127.0.0.1" not in answer.text


@pytest.fixture
def revision_put_back(sessions):
    """All tests share the schema, so what the database says of it is as before at the end."""
    yield
    with session_scope(sessions) as session:
        session.execute(text("CREATE TABLE IF NOT EXISTS alembic_version (version_num varchar(32) NOT NULL)"))
        session.execute(text("DELETE FROM alembic_version"))
        session.execute(text("INSERT INTO alembic_version VALUES (:revision)"), {"revision": newest_revision()})


@pytest.mark.usefixtures("revision_put_back")
def test_an_old_schema_is_not_ready(client, sessions):
    with session_scope(sessions) as session:
        session.execute(text("UPDATE alembic_version SET version_num = 'older'"))
    assert "at older, this code needs" in client.get("/readyz").json()["migrations"]
    with session_scope(sessions) as session:
        session.execute(text("DROP TABLE alembic_version"))
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "python -m store.migrate" in answer.json()["migrations"]


def test_metrics_count_jobs_and_requests_by_route(api, stage):
    stage.succeeded({})
    stage.queued()
    for _ in range(3):
        api.get("/v1/jobs/job_1")
    api.get("/v1/nowhere/1")
    api.get("/healthz")
    answer = api.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain")
    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert (samples["axformer_jobs", "succeeded"], samples["axformer_jobs", "queued"]) == (1, 1)
    assert samples["axformer_jobs", "running"] == 0
    assert samples["axformer_http_requests_total", "/v1/jobs/{job_id}", "404", "GET"] == 3
    assert samples["axformer_http_requests_total", "404", "GET", "unknown"] == 1
    assert samples["axformer_http_requests_total", "/healthz", "200", "GET"] == 1
    assert samples["axformer_http_request_seconds_count", "/v1/jobs/{job_id}", "GET"] == 3


def test_a_full_disk_is_not_ready(settings):
    fetch = settings.fetch.model_copy(update={"keep_free_bytes": 2**60})
    with TestClient(create_app(settings.model_copy(update={"fetch": fetch}))) as client:
        answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "unavailable")
    assert "make room" in answer.json()["disk"]


def test_when_each_thread_of_a_worker_last_did_its_work_is_a_metric(api, sessions):
    with session_scope(sessions) as session:
        note_worker(session, "host:1", "host:2", "axformer", Device.CPU)
        note_successes(session, "host:1", {"janitor": 1_700_000_000.0})
    line = 'axformer_worker_last_success_seconds{thread="janitor",worker="host:1"} 1.7e+09'
    assert line in api.get("/metrics").text.splitlines()
