"""Let a job bring a token for the model hub, encrypted, until it ends.

Revision 5d0b7c3e94a2, after 1f6ad83b05c9.
"""

import sqlalchemy as sa
from alembic import op

revision = "5d0b7c3e94a2"
down_revision = "1f6ad83b05c9"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("jobs", sa.Column("hub_token", sa.LargeBinary()))


def downgrade() -> None:
    """Forget the tokens; jobs that still wait are refused by the hub."""
    op.drop_column("jobs", "hub_token")
