"""Which database and which jobs this worker can work with, while older and newer workers share one queue.

The revision of the schema is the mark of all that a worker must understand of rows: columns, states, verdicts. A worker
takes a job only from a database at the very revision that it knows; one that is older or newer waits to be replaced, or for
the migration. Knobs change more often, so a job that names one that this worker does not know is left to another.
"""

from functools import cache

from sqlalchemy.orm import Session

from axformer.config import METHODS
from axformer.config.axformer import REMOVED
from store.migrate import newest_revision
from store.repositories.revision import database_revision

KNOBS = frozenset(name for config in METHODS.values() for name in config.model_fields) | frozenset(REMOVED)
"""The knobs that this worker knows, or knows to be gone."""


@cache
def known_revision() -> str:
    """The schema that this worker knows."""
    return newest_revision()


def is_compatible(session: Session) -> bool:
    """Whether the database has the schema that this worker knows."""
    return database_revision(session) == known_revision()
