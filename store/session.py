"""Connections to PostgreSQL, and the transaction scope of a request or of a worker's step."""

import select
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from store.settings import Settings
from store.tables import schema as _schema  # noqa: F401 - whoever uses one table needs those that it refers to

Sessions = sessionmaker[Session]
"""Makes sessions; one a process."""
_TRUSTED_SECONDS = 5.0
"""How long a returned connection is assumed to be alive."""
_RETURNED_AT = "returned_at"


def make_engine(settings: Settings) -> Engine:
    """A pool of connections with the timeouts of the settings. Make it after forking, once a process."""
    database = settings.database
    timeouts = {
        "statement_timeout": database.statement_timeout_ms,
        "lock_timeout": database.lock_timeout_ms,
        "idle_in_transaction_session_timeout": database.idle_transaction_timeout_ms,
        "timezone": "UTC",
    }
    engine = create_engine(
        settings.database_url.get_secret_value(),
        pool_size=database.pool_size,
        max_overflow=database.pool_overflow,
        pool_timeout=database.pool_timeout_seconds,
        pool_use_lifo=True,  # the connection used last has its statements prepared, and the others stay idle
        connect_args={
            "connect_timeout": database.connect_timeout_seconds,
            "options": " ".join(f"-c {name}={value}" for name, value in timeouts.items()),
        },
    )
    _try_doubtful_connections(engine)
    return engine


@contextmanager
def open_sessions(settings: Settings) -> Iterator[Sessions]:
    """The factory of sessions of a program, whose connections are closed at the end."""
    engine = make_engine(settings)
    try:
        yield make_sessions(engine)
    finally:
        engine.dispose()


def make_sessions(engine: Engine) -> Sessions:
    """The factory of sessions on an engine. Rows stay readable after the commit."""
    return sessionmaker(engine, expire_on_commit=False)


def make_reading_sessions(engine: Engine) -> Sessions:
    """The factory of sessions that only read, or write with single statements; each statement is its own transaction.

    Under READ COMMITTED, which all sessions use, each statement sees what was committed when it began, even within one
    transaction. The only difference is therefore that no BEGIN and COMMIT are sent to the server.
    """
    return make_sessions(engine.execution_options(isolation_level="AUTOCOMMIT"))


def _try_doubtful_connections(engine: Engine) -> None:
    """Test connections before use, as ``pool_pre_ping`` does, but only if there is a reason to.

    Asking the server each time would cost a busy API as much as many statements do. A connection that the server has closed
    is readable; one that was cut on the way shows nothing here, but has not been used for a while.
    """

    def note_return(_: DBAPIConnection, record: ConnectionPoolEntry) -> None:
        record.info[_RETURNED_AT] = time.monotonic()

    def try_if_doubtful(connection: DBAPIConnection, record: ConnectionPoolEntry, _: PoolProxiedConnection) -> None:
        returned_at = record.info.get(_RETURNED_AT)
        if returned_at is None:  # it is new
            return
        if time.monotonic() - returned_at < _TRUSTED_SECONDS and not _is_readable(connection.fileno()):
            return
        try:
            engine.dialect.do_ping(connection)
        except psycopg.Error as error:
            raise InvalidatePoolError from error

    event.listen(engine, "checkin", note_return)
    event.listen(engine, "checkout", try_if_doubtful)


def _is_readable(file: int) -> bool:
    ready = select.poll()
    ready.register(file, select.POLLIN)
    return bool(ready.poll(0))


@contextmanager
def session_scope(sessions: Sessions) -> Iterator[Session]:
    """One session: committed at the end, rolled back on any error, always closed."""
    with sessions() as session, session.begin():
        yield session
