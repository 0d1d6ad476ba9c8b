"""Say how often bootstrap draws of the rows accept a trial.

Revision 7c1e5d90b3f2, after d81f6a3c04e7.
"""

import sqlalchemy as sa
from alembic import op

revision = "7c1e5d90b3f2"
down_revision = "d81f6a3c04e7"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; earlier trials were not asked."""
    op.add_column("trials", sa.Column("frequency", sa.Double()))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("trials", "frequency")
