"""All tables together, for migrations and other users of the whole metadata."""

from store.tables import audit, files, jobs, teams, webhooks, workers
from store.tables.base import Base

MODULES = (audit, files, jobs, teams, webhooks, workers)
"""Each adds its tables to the metadata as it is imported."""
metadata = Base.metadata
