"""The real parts that tests share: one PostgreSQL and one Valkey a test run, and a database of its own for each test.

The schema is made once, by the migrations, in a template; a test's database is a copy of it. Its commits are real, so
threads and other processes see them.
"""

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy.engine import make_url

from store.embedded.postgres import create_database, start_postgres
from store.embedded.server import running
from store.embedded.valkey import start_valkey
from store.migrate import migrate
from store.repositories.teams import create_team
from store.session import Sessions, make_engine, make_sessions, session_scope
from store.settings import Settings
from store.tables.teams import Team

TEMPLATE = "axformer_test_template"
UNSAFE_AND_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off"}
NUMBERS = itertools.count(1)


def require_test_database(url: str) -> str:
    """The address, if it is one of a database that tests may destroy."""
    name = make_url(url).database or ""
    if "test" not in name:
        raise RuntimeError(f"tests write and delete; the database '{name}' has no 'test' in its name and is left alone")
    return url


def database_at(server_url: str, name: str) -> str:
    """The address of another database on the same server."""
    return make_url(server_url).set(database=name).render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def server_directory() -> Iterator[Path]:
    """Where the embedded servers of this run live; right under the temporary directory, which every user can reach."""
    directory = Path(tempfile.mkdtemp(prefix="axformer-test-"))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def postgres_url(server_directory: Path) -> Iterator[str]:
    """The PostgreSQL of this run, with the template database in it."""
    server = start_postgres(server_directory / "postgres", server_directory / "postgres.log", UNSAFE_AND_FAST)
    with running(server):
        create_database(server.url, TEMPLATE)
        migrate(Settings(database_url=database_at(server.url, TEMPLATE)))
        yield server.url


@pytest.fixture(scope="session")
def broker_url(server_directory: Path) -> Iterator[str]:
    """The Valkey of this run."""
    with running(start_valkey(server_directory / "valkey", server_directory / "valkey.log")) as server:
        yield server.url


@pytest.fixture
def empty_database_url(postgres_url: str) -> Iterator[str]:
    """A database of this test's own without any table."""
    yield from _copy_of("template0", postgres_url)


@pytest.fixture
def database_url(postgres_url: str) -> Iterator[str]:
    """A database of this test's own with the present schema."""
    yield from _copy_of(TEMPLATE, postgres_url)


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """Settings for this test's database and directory, without a broker."""
    return Settings(database_url=database_url, var_dir=tmp_path / "var")


@pytest.fixture
def sessions(settings: Settings) -> Iterator[Sessions]:
    """Makes sessions on this test's database."""
    engine = make_engine(settings)
    yield make_sessions(engine)
    engine.dispose()


@pytest.fixture
def team(sessions: Sessions) -> Team:
    """A team."""
    with session_scope(sessions) as session:
        return create_team(session, "crew")


def _copy_of(template: str, server_url: str) -> Iterator[str]:
    name = sql.Identifier(f"test_{next(NUMBERS)}")
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(name, sql.Identifier(template)))
        yield require_test_database(database_at(server_url, name.as_string().strip('"')))
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
