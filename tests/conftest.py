"""The real parts that tests share: one PostgreSQL and one Valkey a test run, and for each test an empty database.

The schema is made once, by the migrations. A test's commits are real, so threads and other processes see them; after the
test every connection is ended and every row deleted, which takes a millisecond where a new database takes half a second.
"""

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import HealthCheck
from hypothesis import settings as laws
from psycopg import sql
from pydantic import SecretStr
from sqlalchemy.engine import make_url

from axformer.forms import interpreter
from store.embedded.postgres import create_database, start_postgres
from store.embedded.server import running
from store.embedded.valkey import start_valkey
from store.migrate import migrate
from store.repositories.teams import create_team
from store.session import Sessions, make_engine, make_sessions, session_scope
from store.settings import Settings
from store.tables.schema import metadata
from store.tables.teams import Team
from tests import forked

if TYPE_CHECKING:
    from tests.object_store import ObjectStore, Rclone

# A law is tried on the same examples in every run, so that what passes here passes wherever it is run again, however busy
# the machine; `make torture` tries others each time.
laws.register_profile("fixed", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
laws.register_profile("wandering", deadline=None, suppress_health_check=[HealthCheck.too_slow])
laws.load_profile("fixed")

# Tests start hundreds of processes; without bytecode each would compile the whole package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

gc.disable()  # until all tests are collected: imports leave no garbage, and looking for it takes a tenth of their time

DATABASE = "axformer_test"
EMPTY_DATABASE = "axformer_test_empty"
CLEAN = sql.SQL("; ").join(
    [
        sql.SQL(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ),
        *(sql.SQL("DELETE FROM {}").format(sql.Identifier(table.name)) for table in reversed(metadata.sorted_tables)),
    ]
)
UNSAFE_AND_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off"}


QUICK_FAMILIES = {"bert", "gpt2"}
"""An encoder and a decoder, with which `make test` tries the laws over all families; `make test-all` has the others too."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Call laws over all families slow for most of them."""
    registry = sys.modules.get("axformer.architectures.registry")  # not imported for tests that need no PyTorch
    slow = set() if registry is None else set(registry.ARCHITECTURES) - QUICK_FAMILIES
    for item in items:
        params = (
            item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
        )
        families = {str(getattr(one, "family", one)) for one in params}
        if families & slow:
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Fork what would be a fresh Python, measure a result's speed with two repeats, and collect no garbage among the imports.

    Where a test has PyTorch, the process that forks starts before the first test. Real interpreters and real measurements are
    in tests of their own, and wherever a test starts the service.
    """
    interpreter.launch = forked.ForkedInterpreter
    if "torch" in sys.modules:
        from axformer.reporting import form_path, measure, speed

        forked.start()
        measure.QUICK = form_path.QUICK = speed.Effort(least=2, most=2, seconds=1.0, warm_ups=1)
    gc.enable()
    gc.freeze()  # each training begins with a garbage collection, which takes a third of a second over all imported objects


def require_test_database(url: str) -> str:
    """The address, if it is one of a database that tests may destroy."""
    name = make_url(url).database or ""
    if "test" not in name:
        raise RuntimeError(f"tests write and delete; the database '{name}' has no 'test' in its name and is left alone")
    return url


def database_at(server_url: str, name: str) -> str:
    """The address of another database on the same server."""
    return make_url(server_url).set(database=name).render_as_string(hide_password=False)


def delete_all_rows(url: str) -> None:
    """End all other connections of a test database and empty its tables, over a connection that stays while it can."""
    try:
        cleaning(url).execute(CLEAN)
    except psycopg.OperationalError:  # a test has ended it
        cleaning.cache_clear()
        cleaning(url).execute(CLEAN)


@cache
def cleaning(url: str) -> psycopg.Connection:
    """A connection to a test database for what comes after a test."""
    return psycopg.connect(require_test_database(url), autocommit=True)


@pytest.fixture(scope="session")
def server_directory() -> Iterator[Path]:
    """Where the embedded servers of this run live; right under the temporary directory, which every user can reach."""
    directory = Path(tempfile.mkdtemp(prefix="axformer-test-"))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def postgres_url(server_directory: Path) -> Iterator[str]:
    """The PostgreSQL of this run."""
    server = start_postgres(server_directory / "postgres", server_directory / "postgres.log", UNSAFE_AND_FAST)
    with running(server):
        yield server.url


@pytest.fixture(scope="session")
def migrated_database_url(postgres_url: str) -> str:
    """The database that tests take turns with."""
    create_database(postgres_url, DATABASE)
    url = database_at(postgres_url, DATABASE)
    migrate(Settings(database_url=SecretStr(url)))
    return url


@pytest.fixture(scope="session")
def broker_url(server_directory: Path) -> Iterator[str]:
    """The Valkey of this run."""
    with running(start_valkey(server_directory / "valkey", server_directory / "valkey.log")) as server:
        yield server.url


@pytest.fixture(scope="session")
def object_server() -> Iterator["ObjectStore"]:
    """The S3-compatible store of this process."""
    from tests.object_store import ObjectStore  # takes a second, and few tests need it

    store = ObjectStore()
    yield store
    store.stop()


@pytest.fixture(scope="session")
def signed_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Rclone"]:
    """A store of this process that checks signatures."""
    from tests.object_store import Rclone

    store = Rclone(tmp_path_factory.mktemp("rclone"))
    yield store
    store.stop()


@pytest.fixture
def object_store(object_server: "ObjectStore", monkeypatch: pytest.MonkeyPatch) -> "ObjectStore":
    """The store without faults, and the variables with which this process finds it."""
    for name, value in object_server.environment.items():
        monkeypatch.setenv(name, value)
    object_server.rules.clear()
    object_server.requests.clear()
    return object_server


@pytest.fixture
def database_url(migrated_database_url: str) -> Iterator[str]:
    """A database with the present schema and no rows."""
    yield migrated_database_url
    delete_all_rows(migrated_database_url)


@pytest.fixture
def bare_database_url(postgres_url: str) -> Iterator[str]:
    """A database without any table."""
    create_database(postgres_url, EMPTY_DATABASE)
    yield database_at(postgres_url, EMPTY_DATABASE)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(EMPTY_DATABASE)))


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """Settings for this test's database and directory, without a broker."""
    return Settings(database_url=SecretStr(database_url), var_dir=tmp_path / "var")


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
