"""Fit weights on data of its own: a job may name rows without labels.

Revision 8d27c05e9b1f, after 5b8a2c71d904.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "8d27c05e9b1f"
down_revision = "5b8a2c71d904"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; jobs of before fit on the rows that decide."""
    op.add_column("jobs", sa.Column("calibrate", JSONB()))


def downgrade() -> None:
    """Forget what was to be fitted on; such jobs fit on the rows that decide."""
    op.drop_column("jobs", "calibrate")
