"""Lay the tables of 0.2.0, the first release: teams, keys and the audit log, jobs with their trace, events, files and messages,
uploads, workers.

Revision 8d41f6c2b7e9, the first. A database of an earlier version needs the migrations of 0.2.0 first.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSON, JSONB

revision = "8d41f6c2b7e9"
down_revision = None
branch_labels = None
depends_on = None

STATES = (
    "queued",
    "fetching",
    "validating",
    "running",
    "packaging",
    "pausing",
    "paused",
    "cancelling",
    "succeeded",
    "failed",
    "cancelled",
)
ACTIVE = "state IN ('cancelling', 'fetching', 'packaging', 'pausing', 'running', 'validating')"


def upgrade() -> None:
    """Make the tables."""
    _create_teams()
    _create_jobs()
    _create_trials()
    _create_parts_of_jobs()
    _create_messages()
    op.create_table(
        "uploads",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("team_id", sa.Text(), sa.ForeignKey("teams.id"), nullable=False, index=True),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        _created_at(),
    )
    op.create_table(
        "workers",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("process", sa.Text(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("device", _one_of("device", "any", "cpu", "gpu"), nullable=False),
        _created_at(),
        _now("last_seen"),
        sa.Column("machine", sa.Text()),
    )


def downgrade() -> None:
    """Drop the tables with all that is in them."""
    of_jobs = ("trials", "outbox", "events", "deliveries", "artifacts")
    for table in (*of_jobs, "webhook_secrets", "uploads", "turns", "jobs", "audit", "api_keys", "workers", "teams"):
        op.drop_table(table)


def _create_teams() -> None:
    op.create_table(
        "teams",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), nullable=False, unique=True),
        _created_at(),
        sa.Column("running_limit", sa.BigInteger()),
        sa.Column("queued_limit", sa.BigInteger()),
        sa.Column("stored_bytes_limit", sa.BigInteger()),
        sa.Column("used_seconds", sa.Double(), server_default=sa.text("0"), nullable=False),
        _now("used_as_of"),
        sa.CheckConstraint("running_limit >= 0 AND queued_limit >= 0 AND stored_bytes_limit >= 0", name="limits"),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text(), primary_key=True),
        _of_team(index=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary(), nullable=False),
        _created_at(),
        _time("last_used_at"),
        _time("revoked_at"),
        sa.Column("scope", _one_of("scope", "read", "write", "admin"), nullable=False),
        _time("expires_at"),
        sa.Column("replaced_by", sa.Text()),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), primary_key=True),
        _of_team(),
        sa.Column("key_id", sa.Text()),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("object_id", sa.Text()),
        sa.Column("address", sa.Text()),
        sa.Column("times", sa.BigInteger(), server_default="1", nullable=False),
        _time("hour"),
        _created_at(),
        sa.UniqueConstraint("key_id", "action", "hour"),
    )
    op.create_index("ix_audit_team_id_id", "audit", ["team_id", "id"])
    op.create_table(
        "turns",
        sa.Column("id", sa.BigInteger(), sa.Identity(), primary_key=True),
        _of_team(),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
    )


def _create_jobs() -> None:
    kind = _one_of("kind", "pass", "export", "analysis")
    op.create_table(
        "jobs",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("team_id", sa.Text(), sa.ForeignKey("teams.id"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", _one_of("state", *STATES), nullable=False),
        sa.Column("status_reason", sa.Text()),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("labels", JSONB(), nullable=False),
        sa.Column("error", JSONB()),
        sa.Column("report", JSONB()),
        sa.Column("progress", JSONB()),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("max_attempts", sa.BigInteger(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("worker", sa.Text()),
        _time("lease_until"),
        _time("cancel_requested_at"),
        sa.Column("event_count", sa.BigInteger(), nullable=False),
        sa.Column("idempotency_key", sa.Text()),
        sa.Column("body_sha256", sa.LargeBinary()),
        _created_at(),
        _time("started_at"),
        _time("finished_at"),
        sa.Column("device", _one_of("device", "any", "cpu", "gpu"), server_default="any", nullable=False),
        _now("waits_since"),
        _time("claimed_at"),
        sa.Column("worker_seconds", sa.Double(), server_default=sa.text("0"), nullable=False),
        sa.Column("webhook", JSONB()),
        sa.Column("first_answer", sa.Text()),
        sa.Column("hub_token", sa.LargeBinary()),
        sa.Column("path", JSONB()),
        sa.Column("exported_from", sa.Text()),
        sa.Column("upto", sa.BigInteger()),
        sa.Column("summary", JSONB()),
        sa.Column("kind", kind, server_default="pass", nullable=False),
        sa.Column("handover", JSONB()),
        sa.Column("handover_token", sa.LargeBinary()),
        _time("handover_at"),
        sa.Column("machine", sa.Text()),
        _now("queued_at"),
        sa.Column("spec", JSONB(), nullable=False),
        sa.UniqueConstraint("team_id", "idempotency_key"),
        sa.CheckConstraint("attempt >= 0 AND event_count >= 0 AND fence >= 0", name="counts"),
    )
    op.create_index("ix_jobs_team_page", "jobs", ["team_id", "created_at", "id"])
    queued = sa.text("state = 'queued'")
    op.create_index("ix_jobs_queue", "jobs", ["team_id", "waits_since"], postgresql_where=queued)
    op.create_index("ix_jobs_held", "jobs", ["team_id"], postgresql_where=sa.text("worker IS NOT NULL"))
    op.create_index("ix_jobs_leases", "jobs", ["lease_until"], postgresql_where=sa.text(ACTIVE))
    handed = sa.text("handover_at IS NOT NULL")
    op.create_index("ix_jobs_handover_at", "jobs", ["handover_at"], postgresql_where=handed)
    labels = {"labels": "jsonb_path_ops"}
    op.create_index("ix_jobs_labels", "jobs", ["labels"], postgresql_using="gin", postgresql_ops=labels)


def _create_trials() -> None:
    op.create_table(
        "trials",
        _of_job(primary_key=True),
        sa.Column("seq", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("element", sa.Text()),
        sa.Column("loss", sa.Double(), nullable=False),
        sa.Column("loss_is_bound", sa.Boolean(), nullable=False),
        sa.Column("helped", sa.BigInteger()),
        sa.Column("samples", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.Column("min_loss", sa.Double(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("precision", sa.Text(), nullable=False),
        sa.Column("parameters", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("loss_band", sa.Double(), nullable=False),
        sa.Column("plan", JSONB()),
        sa.Column("milliseconds", JSONB()),
        sa.Column("levels", JSONB()),
        sa.Column("figures", JSON()),
    )


def _create_parts_of_jobs() -> None:
    op.create_table(
        "events",
        _of_job(primary_key=True),
        sa.Column("seq", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("data", JSONB(), nullable=False),
        _created_at(),
    )
    op.create_table(
        "artifacts",
        _of_job(primary_key=True),
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        _created_at(),
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.BigInteger(), sa.Identity(), primary_key=True),
        _of_job(index=True),
        _created_at(),
        _time("sent_at"),
    )
    op.create_index("ix_outbox_unsent", "outbox", ["id"], postgresql_where=sa.text("sent_at IS NULL"))


def _create_messages() -> None:
    op.create_table(
        "webhook_secrets",
        sa.Column("id", sa.Text(), primary_key=True),
        _of_team(index=True),
        sa.Column("salt", sa.LargeBinary(), nullable=False),
        sa.Column("key_fingerprint", sa.Text(), nullable=False),
        _created_at(),
        _time("expires_at"),
    )
    op.create_table(
        "deliveries",
        _of_job(primary_key=True),
        sa.Column("seq", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("id", sa.Text(), nullable=False, unique=True),
        _of_team(),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("state", _one_of("state", "pending", "delivered", "dead"), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=False),
        _time("sending_until"),
        sa.Column("last_status", sa.BigInteger()),
        sa.Column("last_error", sa.Text()),
        _time("attempted_at"),
        _created_at(),
    )
    op.create_index("ix_deliveries_due", "deliveries", ["next_at"], postgresql_where=sa.text("state = 'pending'"))
    sending = sa.text("sending_until IS NOT NULL")
    op.create_index("ix_deliveries_sending", "deliveries", ["url"], postgresql_where=sending)


def _created_at() -> sa.Column[object]:
    return _now("created_at")


def _now(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False)


def _time(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True))


def _of_team(*, index: bool = False) -> sa.Column[object]:
    return sa.Column("team_id", sa.Text(), sa.ForeignKey("teams.id", ondelete="CASCADE"), nullable=False, index=index)


def _of_job(*, primary_key: bool = False, index: bool = False) -> sa.Column[object]:
    job = sa.ForeignKey("jobs.id", ondelete="CASCADE")
    return sa.Column("job_id", sa.Text(), job, primary_key=primary_key, nullable=False, index=index)


def _one_of(name: str, *words: str) -> sa.Enum:
    return sa.Enum(*words, name=name, native_enum=False, create_constraint=True, length=16)
