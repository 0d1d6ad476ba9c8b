"""All tables together, for migrations and other users of the whole metadata."""

from store.tables.base import Base

metadata = Base.metadata
