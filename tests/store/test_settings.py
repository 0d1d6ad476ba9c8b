"""Settings are read once, checked, and keep secrets to themselves."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from store.setting_groups import DatabaseSettings
from store.settings import Settings, StackSettings


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting comes from the shell that runs the tests."""
    for name in ("DATABASE_URL", "BROKER_URL", "AXFORMER_FILE_ROOTS", "PORT"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_name_of_postgres_means_psycopg_3(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setenv("DATABASE_URL", f"{scheme}://me:pw@host:5432/db?sslmode=require")
    url = Settings.from_environment().database_url.get_secret_value()
    assert url == "postgresql+psycopg://me:pw@host:5432/db?sslmode=require"


@pytest.mark.parametrize(
    "url", ["", "mysql://me:hunter2@host/db", "host/db", "postgresql+asyncpg://me:hunter2@host/db"]
)
def test_other_databases_are_refused_without_showing_the_password(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(ValidationError, match="is not a PostgreSQL address") as caught:
        Settings.from_environment()
    assert "hunter2" not in str(caught.value)


def test_a_missing_database_is_named() -> None:
    with pytest.raises(ValidationError, match="DATABASE_URL"):
        Settings.from_environment()


def test_settings_show_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:hunter2@host/db")
    monkeypatch.setenv("BROKER_URL", "redis://:hunter2@host/0")
    assert "hunter2" not in repr(Settings.from_environment())
    assert "hunter2" not in repr(StackSettings())


def test_file_roots_are_a_path_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://host/db")
    assert Settings.from_environment().file_roots == ()
    monkeypatch.setenv("AXFORMER_FILE_ROOTS", "/data:/models/../models")
    assert Settings.from_environment().file_roots == (Path("/data"), Path("/models"))


def test_a_setting_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://host/db")
    monkeypatch.setenv("AXFORMER_SHARDS", "2")
    with pytest.raises(
        ValidationError, match=r"AXFORMER_SHARDS is of an earlier version .* start a worker for each GPU"
    ):
        Settings.from_environment()


def test_values_out_of_range_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://host/db")
    monkeypatch.setenv("AXFORMER_LEASE_SECONDS", "0")
    with pytest.raises(ValidationError, match="greater than 0"):
        Settings.from_environment()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"HEARTBEAT_SECONDS": "60"}, "lease_seconds=60 is shorter than 3 times heartbeat_seconds=60"),
        ({"LEASE_SECONDS": "2"}, "lease_seconds=2 is shorter than 3 times heartbeat_seconds=1"),
        (
            {"POOL_SIZE": "3", "POOL_OVERFLOW": "0"},
            "sessions_at_once=8 is not below pool_size and pool_overflow, together 3",
        ),
        ({"PAGE_LIMIT_MAX": "20"}, "page_limit_default=50 is above page_limit_max=20"),
        ({"RETAIN_JOB_DAYS": "1e7"}, "less than or equal to 36525"),
    ],
)
def test_values_that_defeat_each_other_are_refused(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, str], message: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:hunter2@host/db")
    for name, text in values.items():
        monkeypatch.setenv(f"AXFORMER_{name}", text)
    with pytest.raises(ValidationError, match=message) as caught:
        Settings.from_environment()
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "group", "field", "value"),
    [
        ("AXFORMER_POOL_SIZE", "3", "database", "pool_size", 3),
        ("AXFORMER_STATEMENT_TIMEOUT_MS", "5", "database", "statement_timeout_ms", 5),
        ("AXFORMER_FETCH_PLAIN_HTTP", "true", "fetch", "plain_http", True),
        (
            "AXFORMER_FETCH_PRIVATE_HOSTS",
            "Files.intern, 10.0.0.8,",
            "fetch",
            "private_hosts",
            ("files.intern", "10.0.0.8"),
        ),
        ("AXFORMER_FETCH_PORTS", "8080, 8443", "fetch", "ports", (8080, 8443)),
        ("AXFORMER_RATE_REQUESTS", "0", "rate", "requests", 0),
        ("AXFORMER_WEBHOOK_RETRY_SECONDS", "1,2.5", "webhook", "retry_seconds", (1.0, 2.5)),
        ("AXFORMER_RETAIN_JOB_DAYS", "30", "retain", "job_days", 30.0),
    ],
)
def test_a_group_reads_its_own_variables(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, group: str, field: str, value: object
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://host/db")
    monkeypatch.setenv(name, text)
    assert getattr(getattr(Settings.from_environment(), group), field) == value


def test_a_wrong_value_of_a_group_is_named_with_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://host/db")
    monkeypatch.setenv("AXFORMER_RETAIN_JOB_DAYS", "0")
    with pytest.raises(ValidationError, match=r"AXFORMER_\*\nretain\.job_days\n.*greater than 0"):
        Settings.from_environment()


def test_the_lease_outlives_several_heartbeats() -> None:
    fields, database = Settings.model_fields, DatabaseSettings.model_fields
    assert fields["lease_seconds"].default >= 3 * fields["heartbeat_seconds"].default
    assert database["pool_size"].default + database["pool_overflow"].default >= 40  # threads that run endpoints
