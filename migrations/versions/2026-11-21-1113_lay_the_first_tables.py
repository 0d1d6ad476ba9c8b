"""Lay the first tables: teams and keys, jobs with their trace, events, artifacts and messages, and uploads.

Revision 185d7ecc28cb, the first.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "185d7ecc28cb"
down_revision = None
branch_labels = None
depends_on = None

STATES = (
    "queued",
    "fetching",
    "validating",
    "running",
    "packaging",
    "cancelling",
    "succeeded",
    "failed",
    "cancelled",
)
ACTIVE = "state IN ('cancelling', 'fetching', 'packaging', 'running', 'validating')"


def upgrade() -> None:
    """Make the tables."""
    _create_teams()
    _create_jobs()
    _create_trials()
    _create_parts_of_jobs()
    op.create_table(
        "uploads",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("team_id", sa.Text(), sa.ForeignKey("teams.id"), nullable=False, index=True),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        _created_at(),
    )


def downgrade() -> None:
    """Drop the tables with all that is in them."""
    for table in ("uploads", "outbox", "artifacts", "events", "trials", "jobs", "api_keys", "teams"):
        op.drop_table(table)


def _create_teams() -> None:
    op.create_table(
        "teams",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), nullable=False, unique=True),
        _created_at(),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("team_id", sa.Text(), sa.ForeignKey("teams.id", ondelete="CASCADE"), nullable=False, index=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary(), nullable=False),
        _created_at(),
        _time("last_used_at"),
        _time("revoked_at"),
    )


def _create_jobs() -> None:
    state = sa.Enum(*STATES, name="state", native_enum=False, create_constraint=True, length=16)
    op.create_table(
        "jobs",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("team_id", sa.Text(), sa.ForeignKey("teams.id"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", state, nullable=False),
        sa.Column("status_reason", sa.Text()),
        sa.Column("checkpoint", JSONB(), nullable=False),
        sa.Column("validation", JSONB(), nullable=False),
        sa.Column("test", JSONB()),
        sa.Column("preset", sa.Text(), nullable=False),
        sa.Column("config", JSONB(), nullable=False),
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
        sa.UniqueConstraint("team_id", "idempotency_key"),
        sa.CheckConstraint("attempt >= 0 AND event_count >= 0 AND fence >= 0", name="counts"),
    )
    op.create_index("ix_jobs_team_page", "jobs", ["team_id", "created_at", "id"])
    queue: list[str | sa.TextClause] = [sa.text("priority DESC"), "created_at", "id"]
    op.create_index("ix_jobs_queue", "jobs", queue, postgresql_where=sa.text("state = 'queued'"))
    op.create_index("ix_jobs_leases", "jobs", ["lease_until"], postgresql_where=sa.text(ACTIVE))
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


def _created_at() -> sa.Column[object]:
    return sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False)


def _time(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True))


def _of_job(*, primary_key: bool = False, index: bool = False) -> sa.Column[object]:
    job = sa.ForeignKey("jobs.id", ondelete="CASCADE")
    return sa.Column("job_id", sa.Text(), job, primary_key=primary_key, nullable=False, index=index)
