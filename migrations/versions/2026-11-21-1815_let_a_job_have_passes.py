"""Let a job have passes: jobs that search an order each, below a parent.

Revision 6f0c2b9d41ae, after 185d7ecc28cb.
"""

import sqlalchemy as sa
from alembic import op

revision = "6f0c2b9d41ae"
down_revision = "185d7ecc28cb"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Let a job name its parent."""
    op.add_column("jobs", sa.Column("parent_id", sa.Text()))
    op.create_foreign_key("fk_jobs_parent_id_jobs", "jobs", "jobs", ["parent_id"], ["id"], ondelete="CASCADE")
    op.create_index("ix_jobs_parent_id", "jobs", ["parent_id"])


def downgrade() -> None:
    """Forget the passes, which would be jobs of nobody, and the column."""
    op.execute("DELETE FROM jobs WHERE parent_id IS NOT NULL")
    op.drop_column("jobs", "parent_id")
