"""Keep the plan of a trial that is of a whole one.

Revision 5b8a2c71d904, after 9c4e7d10b6a5.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "5b8a2c71d904"
down_revision = "9c4e7d10b6a5"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Give trials a plan; those that are there have none."""
    op.add_column("trials", sa.Column("plan", JSONB(), nullable=True))


def downgrade() -> None:
    """Forget the jobs' trials that are of whole plans, which the earlier version cannot read, and their column."""
    op.execute(
        "UPDATE jobs SET state = 'failed', finished_at = now(), "
        "error = jsonb_build_object('code', 'internal_error', 'message', 'the service went back to a version without "
        "compression, which cannot go on with this job', 'retryable', false) "
        "WHERE config->>'method' = 'compress' AND state NOT IN ('succeeded', 'failed', 'cancelled')"
    )
    op.execute("DELETE FROM trials WHERE plan IS NOT NULL")
    op.drop_column("trials", "plan")
