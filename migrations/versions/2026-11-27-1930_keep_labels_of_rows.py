"""Keep the labels that people give for changed answers.

Revision 4a7d20c96e1f, after 5e2b9c71f0a8.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "4a7d20c96e1f"
down_revision = "5e2b9c71f0a8"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "row_labels",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("row_id", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("label", JSONB(), nullable=False),
        sa.Column("given_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "row_id", "key_id"),
    )


def downgrade() -> None:
    """Drop it; the labels are lost."""
    op.drop_table("row_labels")
