"""The identity of the database, and its latest migration."""

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
