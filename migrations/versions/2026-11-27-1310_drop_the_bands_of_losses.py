"""Drop the bands of losses, which only trials in low precision had.

Revision 5e2b9c71f0a8, after 8d41f6c2b7e9.
"""

import sqlalchemy as sa
from alembic import op

revision = "5e2b9c71f0a8"
down_revision = "8d41f6c2b7e9"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop the column."""
    op.drop_column("trials", "loss_band")


def downgrade() -> None:
    """Add it again; the bands that were recorded are lost, and all are 0."""
    op.add_column("trials", sa.Column("loss_band", sa.Double(), nullable=False, server_default="0"))
    op.alter_column("trials", "loss_band", server_default=None)
