"""Runs the migrations: one process at a time, and never waiting long for a lock that running code holds.

The address of the database is what the caller gave (``store.migrate``) or ``DATABASE_URL``.
"""

from alembic import context
from sqlalchemy import Connection, create_engine, pool, text

from store import locks
from store.settings import Settings
from store.tables.schema import metadata

_LEFT = {"outbox"}
"""Tables that version 0.2.0 fills and later code does not know; the next release drops them."""
LOCK_TIMEOUT = "10s"
"""A migration that waits longer for a table would make every query behind it wait as well."""
STATEMENT_TIMEOUT = "15min"
"""Long enough to build an index on a large trace."""


def migrate(connection: Connection) -> None:
    """Run what was asked for under the advisory lock, in one transaction a migration."""
    connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT}'"))
    connection.execute(text(f"SET statement_timeout = '{STATEMENT_TIMEOUT}'"))
    connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": locks.MIGRATIONS})
    connection.commit()
    context.configure(
        connection=connection,
        target_metadata=metadata,
        transaction_per_migration=True,
        compare_server_default=True,
        include_name=lambda name, kind, _: kind != "table" or name not in _LEFT,
    )
    with context.begin_transaction():
        context.run_migrations()


def database_url() -> str:
    """Where to migrate."""
    given = context.config.attributes.get("database_url")
    return str(given) if given else Settings.from_environment().database_url.get_secret_value()


engine = create_engine(database_url(), poolclass=pool.NullPool)
with engine.connect() as connection:  # the lock ends with the connection
    migrate(connection)
