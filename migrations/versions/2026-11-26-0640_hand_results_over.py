"""Let a job say where its files are to be put.

Revision 5b9e60d1c7a3, after 5b7e02c9d1a4.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "5b9e60d1c7a3"
down_revision = "5b7e02c9d1a4"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Give jobs a place for their files; those that are there have none."""
    op.add_column("jobs", sa.Column("handover", JSONB(none_as_null=True), nullable=True))
    op.add_column("jobs", sa.Column("handover_token", sa.LargeBinary(), nullable=True))
    op.add_column("jobs", sa.Column("handover_at", sa.DateTime(timezone=True), nullable=True))
    due = sa.text("handover_at IS NOT NULL")
    op.create_index("ix_jobs_handover_at", "jobs", ["handover_at"], postgresql_where=due)


def downgrade() -> None:
    """Forget the places; files that were put there stay."""
    op.drop_index("ix_jobs_handover_at", "jobs")
    for column in ("handover_at", "handover_token", "handover"):
        op.drop_column("jobs", column)
