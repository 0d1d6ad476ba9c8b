"""Which migration a database has seen last."""

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

_TABLE = "alembic_version"


def database_revision(session: Session) -> str | None:
    """The revision of the database's schema; null where it was never migrated."""
    if session.scalar(select(func.to_regclass(_TABLE))) is None:
        return None
    found: str | None = session.scalar(text(f"SELECT version_num FROM {_TABLE}"))  # noqa: S608 - a constant
    return found
