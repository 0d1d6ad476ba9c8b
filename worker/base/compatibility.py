"""Compatibility of this worker with the database and with jobs, while older and newer workers share one queue.

The schema revision stands for everything that a worker must understand about rows: columns, states, verdicts. A worker
takes jobs only from a database at exactly the revision that it knows; an older or newer worker waits for its replacement or
for the migration. Knobs change more often, so a job with an unknown knob is left to another worker.
"""

from functools import cache

from sqlalchemy.orm import Session

from axformer.config import EARLIER
from axformer.config import KNOBS as KNOWN
from store.migrate import newest_revision
from store.repositories.revision import database_revision

KNOBS = frozenset(KNOWN) | EARLIER
"""The knobs that this worker knows, including those of earlier versions."""


@cache
def known_revision() -> str:
    """The schema that this worker knows."""
    return newest_revision()


def is_compatible(session: Session) -> bool:
    """Whether the database has the schema that this worker knows."""
    return database_revision(session) == known_revision()
