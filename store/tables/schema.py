"""All tables together, for migrations and other users of the whole metadata."""

from store.tables import (
    audit,
    events,
    files,
    jobs,
    teams,
    trials,
    webhooks,
    workers,
)
from store.tables.base import Base

TABLES = (
    teams.Team,
    teams.ApiKey,
    jobs.Job,
    trials.TrialRow,
    events.Event,
    files.Artifact,
    files.Upload,
    workers.OutboxMessage,
    workers.TeamTurn,
    workers.Worker,
    webhooks.WebhookSecret,
    webhooks.Delivery,
    audit.AuditEntry,
)
metadata = Base.metadata
