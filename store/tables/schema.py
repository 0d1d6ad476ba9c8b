"""All tables together, for migrations and other users of the whole metadata."""

from store.tables import audit, events, files, jobs, labels, teams, trials, webhooks, workers
from store.tables.base import Base

MODULES = (audit, events, files, jobs, labels, teams, trials, webhooks, workers)
"""Each adds its tables to the metadata as it is imported."""
metadata = Base.metadata
