"""A session scope commits or leaves nothing, and no statement or lock is waited for without end."""

from collections.abc import Iterator

import psycopg
import pytest
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from store.repositories import jobs, moves, teams
from store.session import Sessions, make_engine, make_sessions, session_scope
from store.setting_groups import DatabaseSettings
from store.settings import Settings
from store.tables.teams import Team
from tests.conftest import require_test_database
from tests.store.makers import Makers


def test_the_scope_commits_at_its_end(sessions: Sessions) -> None:
    with session_scope(sessions) as session:
        teams.create_team(session, "kept")
    with session_scope(sessions) as session:
        assert teams.find_team(session, "kept") is not None


def test_an_error_undoes_the_whole_scope(sessions: Sessions) -> None:
    def create_and_break() -> None:
        with session_scope(sessions) as session:
            teams.create_team(session, "undone")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        create_and_break()
    with session_scope(sessions) as session:
        assert teams.find_team(session, "undone") is None


def test_rows_are_readable_after_the_scope(team: Team) -> None:
    assert team.name == "crew"
    assert team.created_at.tzinfo is not None


@pytest.fixture
def impatient(settings: Settings) -> Iterator[Sessions]:
    """Sessions that wait for nothing long."""
    engine = make_engine(
        settings.model_copy(update={"database": DatabaseSettings(statement_timeout_ms=200, lock_timeout_ms=100)})
    )
    yield make_sessions(engine)
    engine.dispose()


def test_a_long_statement_is_ended(impatient: Sessions) -> None:
    with session_scope(impatient) as session, pytest.raises(OperationalError, match="statement timeout"):
        session.execute(text("SELECT pg_sleep(5)"))


def test_a_lock_is_not_waited_for_without_end(sessions: Sessions, impatient: Sessions, make: Makers) -> None:
    with session_scope(sessions) as session:
        job = jobs.create_job(session, make.job()).job
    with session_scope(sessions) as holder, session_scope(impatient) as waiter:
        moves.lock_job(holder, job.id)
        with pytest.raises(OperationalError, match="lock timeout"):
            moves.lock_job(waiter, job.id)


@pytest.mark.parametrize("trusted_seconds", [0.0, 3600.0])
def test_a_connection_that_the_server_has_ended_is_replaced(
    sessions: Sessions, database_url: str, trusted_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.session._TRUSTED_SECONDS", trusted_seconds)
    with session_scope(sessions) as session:
        ended = session.scalar(text("SELECT pg_backend_pid()"))
    with psycopg.connect(database_url) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [ended])
    with session_scope(sessions) as session:
        assert session.scalar(text("SELECT pg_backend_pid()")) != ended


def test_an_unreachable_database_is_an_error_not_a_wait(settings: Settings) -> None:
    elsewhere = settings.model_copy(update={"database_url": SecretStr("postgresql+psycopg://me@127.0.0.1:1/db")})
    engine = make_engine(elsewhere)
    with pytest.raises(OperationalError, match="refused"):
        engine.connect()
    engine.dispose()


def test_tests_leave_a_database_alone_whose_name_does_not_say_test() -> None:
    with pytest.raises(RuntimeError, match="the database 'axformer' has no 'test' in its name"):
        require_test_database("postgresql://me@host/axformer?application_name=test")
    assert require_test_database("postgresql://me@host/axformer_test") == "postgresql://me@host/axformer_test"
