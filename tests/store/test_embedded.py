"""The embedded servers are the real ones, keep what they should, and leave nothing running."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from store.embedded.postgres import start_postgres
from store.embedded.server import running
from store.embedded.valkey import start_valkey
from store.errors import EmbeddedServerError

FAST = {"fsync": "off"}


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that every user can reach, unlike those of pytest."""
    path = Path(tempfile.mkdtemp(prefix="axformer-test-"))
    yield path
    shutil.rmtree(path)


def query(url: str, statement: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(statement).fetchone() if statement.startswith("SELECT") else None
        if row is None:
            connection.execute(statement)
        return row[0] if row else None


def test_postgres_18_keeps_its_data_and_password_over_a_restart(directory: Path) -> None:
    data, log = directory / "a name with 'quotes' and spaces", directory / "log"
    with running(start_postgres(data, log, FAST)) as server:
        assert str(query(server.url, "SELECT version()")).startswith("PostgreSQL 18.")
        query(server.url, "CREATE TABLE kept AS SELECT 42 AS answer")
        first = server
    assert first.child.has_ended()
    with running(start_postgres(data, log, FAST)) as server:
        assert query(server.url, "SELECT answer FROM kept") == 42
    assert stat.S_IMODE((data / "data").stat().st_mode) == 0o700
    assert stat.S_IMODE((data / "password").stat().st_mode) == 0o600


def test_postgres_lets_nobody_in_without_the_password(postgres_url: str) -> None:
    password = psycopg.conninfo.conninfo_to_dict(postgres_url)["password"]
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgres_url.replace(str(password), "guess"))


def test_a_start_that_was_interrupted_does_not_hinder_the_next(directory: Path) -> None:
    half = directory / "postgres" / "data.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    with running(start_postgres(directory / "postgres", directory / "log", FAST)) as server:
        assert query(server.url, "SELECT 1") == 1
    assert not half.exists()


def test_a_server_that_cannot_start_says_why(directory: Path) -> None:
    with pytest.raises(EmbeddedServerError, match="unrecognized configuration parameter"):
        start_postgres(directory / "postgres", directory / "log", {"no_such_setting": "1"})


@pytest.mark.slow
def test_valkey_answers_to_its_password_alone_and_keeps_nothing(directory: Path) -> None:
    with running(start_valkey(directory / "with space", directory / "log")) as server:
        with redis.Redis.from_url(server.url) as client:
            client.set("key", "value")
            assert client.info("server")["server_name"] == "valkey"
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        with (
            redis.Redis(port=client.get_connection_kwargs()["port"]) as stranger,
            pytest.raises(redis.AuthenticationError),
        ):
            stranger.get("key")
    assert server.child.has_ended()
    assert [path.name for path in (directory / "with space").iterdir()] == ["valkey.conf"]
    with (
        running(start_valkey(directory / "with space", directory / "log")) as server,
        redis.Redis.from_url(server.url) as client,
    ):
        assert client.get("key") is None


@pytest.mark.slow
def test_a_command_gets_servers_of_its_own_and_its_status_is_passed_on() -> None:
    code = "import os, sys; from store.settings import Settings; from store.session import make_engine; import sqlalchemy; "
    code += "e = make_engine(Settings.from_environment()); c = e.connect(); "
    code += "sys.exit(7 if c.scalar(sqlalchemy.text('SELECT count(*) FROM jobs')) == 0 else 1)"
    bare = {"PATH": os.environ["PATH"], "HOME": ""}
    command = [sys.executable, "-W", "error", "-m", "tests.with_servers", sys.executable, "-c", code]
    finished = subprocess.run(command, env=bare, capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stderr) == (7, "")
