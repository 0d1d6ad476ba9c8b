"""Share workers among teams: limits and used worker time of teams, turns, living workers, and what a job's turn depends on.

Revision c4d7a91e5b30, after 41d7a8c05e93.
"""

import sqlalchemy as sa
from alembic import op

revision = "c4d7a91e5b30"
down_revision = "41d7a8c05e93"
branch_labels = None
depends_on = None

_DEVICE = sa.Enum("any", "cpu", "gpu", name="device", native_enum=False, create_constraint=True, length=16)
_LIMITS = ("running_limit", "queued_limit", "stored_bytes_limit")


def upgrade() -> None:
    """Add tables and columns. Jobs that there are may run anywhere, and have waited since they were posted."""
    _change_teams()
    _change_jobs()
    op.create_table(
        "turns",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("team_id", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_turns"),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_turns_team_id_teams", ondelete="CASCADE"),
    )
    op.create_table(
        "workers",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("process", sa.Text(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("device", _DEVICE, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("last_seen", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_workers"),
    )


def downgrade() -> None:
    """Forget all that."""
    op.drop_table("workers")
    op.drop_table("turns")
    op.drop_index("ix_jobs_held", "jobs")
    op.drop_index("ix_jobs_queue", "jobs")
    for column in ("device", "waits_since", "claimed_at", "worker_seconds"):
        op.drop_column("jobs", column)
    queued = sa.text("state = 'queued'")
    op.create_index("ix_jobs_queue", "jobs", [sa.text("priority DESC"), "created_at", "id"], postgresql_where=queued)
    for column in (*_LIMITS, "used_seconds", "used_as_of"):
        op.drop_column("teams", column)


def _change_teams() -> None:
    for limit in _LIMITS:
        op.add_column("teams", sa.Column(limit, sa.BigInteger()))
    op.create_check_constraint(
        "limits", "teams", "running_limit >= 0 AND queued_limit >= 0 AND stored_bytes_limit >= 0"
    )
    op.add_column("teams", sa.Column("used_seconds", sa.Double(), server_default=sa.text("0"), nullable=False))
    now = sa.text("now()")
    op.add_column("teams", sa.Column("used_as_of", sa.DateTime(timezone=True), server_default=now, nullable=False))


def _change_jobs() -> None:
    op.add_column("jobs", sa.Column("device", _DEVICE, server_default="any", nullable=False))
    now = sa.text("now()")
    op.add_column("jobs", sa.Column("waits_since", sa.DateTime(timezone=True), server_default=now, nullable=False))
    op.add_column("jobs", sa.Column("claimed_at", sa.DateTime(timezone=True)))
    op.add_column("jobs", sa.Column("worker_seconds", sa.Double(), server_default=sa.text("0"), nullable=False))
    op.execute("UPDATE jobs SET waits_since = created_at")
    op.execute("UPDATE jobs SET claimed_at = started_at WHERE worker IS NOT NULL")
    op.execute(
        "UPDATE jobs SET worker_seconds = extract(epoch FROM finished_at - started_at)"
        " WHERE state = 'succeeded' AND finished_at > started_at"
    )
    op.drop_index("ix_jobs_queue", "jobs")
    op.create_index("ix_jobs_queue", "jobs", ["team_id", "waits_since"], postgresql_where=sa.text("state = 'queued'"))
    op.create_index("ix_jobs_held", "jobs", ["team_id"], postgresql_where=sa.text("worker IS NOT NULL"))
