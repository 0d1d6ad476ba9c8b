"""Let a job be an analysis: the other model, and what is asked for.

Revision 5e0b93c7d2a8, after 5b9e60d1c7a3.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "5e0b93c7d2a8"
down_revision = "5b9e60d1c7a3"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Give jobs both; jobs that are there are no analyses and have neither."""
    op.add_column("jobs", sa.Column("against", JSONB(), nullable=True))
    op.add_column("jobs", sa.Column("analysis", JSONB(), nullable=True))


def downgrade() -> None:
    """Remove the analyses, which workers of the version before cannot carry out; their files are found by retention."""
    op.execute("DELETE FROM jobs WHERE kind = 'analysis'")
    op.drop_column("jobs", "analysis")
    op.drop_column("jobs", "against")
