"""The identity of the database, how far it has come, and its latest migration."""

from typing import NamedTuple

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

_TABLE = "alembic_version"


def database_revision(session: Session) -> str | None:
    """The revision of the database's schema; None if it was never migrated."""
    if session.scalar(select(func.to_regclass(_TABLE))) is None:
        return None
    found: str | None = session.scalar(text(f"SELECT version_num FROM {_TABLE}"))  # noqa: S608 - a constant
    return found


def database_identity(session: Session) -> str:
    """An identifier of this database; a copy that was restored elsewhere has another one."""
    query = text(
        "SELECT c.system_identifier || '/' || d.oid FROM pg_control_system() c, pg_database d"
        " WHERE d.datname = current_database()"
    )
    return str(session.execute(query).scalar_one())


class DatabaseMark(NamedTuple):
    """How far a database has come. Both numbers only grow, and a restore takes them back."""

    counted: int
    """Sum of its sequences, which a dump restores exactly."""
    transactions: int
    """The next transaction of the server, which a copy of its files and a replica that lags take back."""


def database_mark(session: Session) -> DatabaseMark:
    """How far this database has come; once the transaction has committed, a crash of the server takes none of it back."""
    query = text(
        "SELECT (SELECT coalesce(sum(last_value), 0) FROM pg_sequences WHERE schemaname = current_schema()),"
        " pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
    )
    counted, transactions = session.execute(query).one()
    # What others have not committed is counted, too. A commit that writes something puts all before it on the disk.
    session.execute(text("SELECT pg_logical_emit_message(true, 'axformer', '')"))
    return DatabaseMark(int(counted), int(transactions))
