"""Migrate a database to the current schema: ``python -m store.migrate``, or from code."""

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from store.settings import Settings

_CONFIG = Path(__file__).parent.parent / "alembic.ini"


def alembic_config(settings: Settings) -> Config:
    """The configuration of alembic for the database of the settings."""
    config = Config(_CONFIG)
    config.attributes["database_url"] = settings.database_url.get_secret_value()
    return config


def migrate(settings: Settings) -> None:
    """Migrate the database to the newest schema. A second process that does the same waits for the first."""
    command.upgrade(alembic_config(settings), "head")


@cache
def newest_revision() -> str:
    """The schema revision that this code expects."""
    head = ScriptDirectory.from_config(Config(_CONFIG)).get_current_head()
    assert head is not None
    return head


if __name__ == "__main__":
    migrate(Settings.from_environment())
