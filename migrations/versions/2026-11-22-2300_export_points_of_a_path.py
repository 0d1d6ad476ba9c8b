"""Let a job hand out a model on the path of another.

Revision e7a05c61b9d4, after c41f9a7be802.
"""

import sqlalchemy as sa
from alembic import op

revision = "e7a05c61b9d4"
down_revision = "c41f9a7be802"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("jobs", sa.Column("exported_from", sa.Text()))
    op.add_column("jobs", sa.Column("upto", sa.BigInteger()))


def downgrade() -> None:
    """Forget which jobs are exports; one that still waits goes on behind its point, as the whole pass would."""
    op.drop_column("jobs", "upto")
    op.drop_column("jobs", "exported_from")
