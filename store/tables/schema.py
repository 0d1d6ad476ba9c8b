"""All tables together, for migrations and other users of the whole metadata."""

from store.tables import (
    artifacts,
    audit,
    events,
    jobs,
    outbox,
    teams,
    trials,
    turns,
    uploads,
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
    artifacts.Artifact,
    uploads.Upload,
    outbox.OutboxMessage,
    turns.Turn,
    workers.Worker,
    webhooks.WebhookSecret,
    webhooks.Delivery,
    audit.AuditEntry,
)
metadata = Base.metadata
