"""Tell others of events: webhooks of jobs, their messages and the secrets that sign them; and keep the first answer.

Revision c94b20a7d518, after 83d0c6f1e7b2.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "c94b20a7d518"
down_revision = "83d0c6f1e7b2"
branch_labels = None
depends_on = None

STATES = ("pending", "delivered", "dead")


def upgrade() -> None:
    """Make the tables and columns. Keys of before, whose first answers are not known, are free again."""
    op.execute("UPDATE jobs SET idempotency_key = NULL, body_sha256 = NULL WHERE idempotency_key IS NOT NULL")
    op.add_column("jobs", sa.Column("webhook", JSONB()))
    op.add_column("jobs", sa.Column("first_answer", sa.Text()))
    op.create_table(
        "webhook_secrets",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("team_id", sa.Text(), sa.ForeignKey("teams.id", ondelete="CASCADE"), nullable=False, index=True),
        sa.Column("salt", sa.LargeBinary(), nullable=False),
        sa.Column("key_fingerprint", sa.Text(), nullable=False),
        _time("created_at", nullable=False, server_default=sa.func.now()),
        _time("expires_at"),
    )
    state = sa.Enum(*STATES, name="state", native_enum=False, create_constraint=True, length=16)
    op.create_table(
        "deliveries",
        sa.Column("job_id", sa.Text(), sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("seq", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("id", sa.Text(), nullable=False, unique=True),
        sa.Column("team_id", sa.Text(), sa.ForeignKey("teams.id", ondelete="CASCADE"), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("state", state, nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        _time("next_at", nullable=False),
        _time("sending_until"),
        sa.Column("last_status", sa.BigInteger()),
        sa.Column("last_error", sa.Text()),
        _time("attempted_at"),
        _time("created_at", nullable=False, server_default=sa.func.now()),
    )
    due, sending = sa.text("state = 'pending'"), sa.text("sending_until IS NOT NULL")
    op.create_index("ix_deliveries_due", "deliveries", ["next_at"], postgresql_where=due)
    op.create_index("ix_deliveries_sending", "deliveries", ["url"], postgresql_where=sending)


def downgrade() -> None:
    """Forget all of it; what was not delivered never will be."""
    op.drop_table("deliveries")
    op.drop_table("webhook_secrets")
    op.drop_column("jobs", "first_answer")
    op.drop_column("jobs", "webhook")


def _time(name: str, **more: object) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), **more)  # type: ignore[arg-type]
