"""Connections to PostgreSQL, and the one scope in which a request or a worker's step reads and writes."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session, sessionmaker

from store.settings import Settings
from store.tables import schema as _schema  # noqa: F401 - whoever uses one table needs those that it refers to

Sessions = sessionmaker[Session]
"""Makes sessions; one a process."""


def make_engine(settings: Settings) -> Engine:
    """A pool of connections with the timeouts of the settings. Make it after forking, once a process."""
    timeouts = {
        "statement_timeout": settings.statement_timeout_ms,
        "lock_timeout": settings.lock_timeout_ms,
        "idle_in_transaction_session_timeout": settings.idle_transaction_timeout_ms,
        "timezone": "UTC",
    }
    return create_engine(
        settings.database_url.get_secret_value(),
        pool_pre_ping=True,
        pool_size=settings.pool_size,
        max_overflow=settings.pool_overflow,
        pool_timeout=settings.pool_timeout_seconds,
        connect_args={
            "connect_timeout": settings.connect_timeout_seconds,
            "options": " ".join(f"-c {name}={value}" for name, value in timeouts.items()),
        },
    )


def make_sessions(engine: Engine) -> Sessions:
    """The factory of sessions on an engine. Rows stay readable after the commit."""
    return sessionmaker(engine, expire_on_commit=False)


def make_reading_sessions(engine: Engine) -> Sessions:
    """The factory of sessions that only read, or write with single statements: each statement is a transaction of its own.

    Under READ COMMITTED, which is what all sessions have, each statement sees what is committed when it begins, also in one
    transaction; so nothing changes but that the server is not told of a beginning and an end.
    """
    return make_sessions(engine.execution_options(isolation_level="AUTOCOMMIT"))


@contextmanager
def session_scope(sessions: Sessions) -> Iterator[Session]:
    """One session: committed at the end, rolled back on any error, always closed."""
    with sessions() as session, session.begin():
        yield session
