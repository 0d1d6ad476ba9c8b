"""Let jobs form groups: the cells of an experiment.

Revision c41f9a7be802, after 8b42e07f1d5c.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "c41f9a7be802"
down_revision = "8b42e07f1d5c"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table, and what a job knows of its group."""
    op.create_table(
        "groups",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("team_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("grid", postgresql.JSONB(none_as_null=True), nullable=False),
        sa.Column("idempotency_key", sa.Text()),
        sa.Column("body_sha256", sa.LargeBinary()),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name=op.f("fk_groups_team_id_teams")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_groups")),
        sa.UniqueConstraint("team_id", "idempotency_key", name=op.f("uq_groups_team_id_idempotency_key")),
    )
    op.add_column("jobs", sa.Column("group_id", sa.Text()))
    op.add_column("jobs", sa.Column("cell", postgresql.JSONB(none_as_null=True)))
    op.create_foreign_key(op.f("fk_jobs_group_id_groups"), "jobs", "groups", ["group_id"], ["id"])
    op.create_index(op.f("ix_jobs_group_id"), "jobs", ["group_id"], postgresql_where=sa.text("group_id IS NOT NULL"))


def downgrade() -> None:
    """Forget which jobs belong together; the jobs stay."""
    op.drop_index(op.f("ix_jobs_group_id"), "jobs")
    op.drop_constraint(op.f("fk_jobs_group_id_groups"), "jobs")
    op.drop_column("jobs", "cell")
    op.drop_column("jobs", "group_id")
    op.drop_table("groups")
