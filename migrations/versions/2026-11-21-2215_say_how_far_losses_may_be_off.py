"""Say of each trial how far its loss may be off.

Revision 41d7a8c05e93, after 6f0c2b9d41ae.
"""

import sqlalchemy as sa
from alembic import op

revision = "41d7a8c05e93"
down_revision = "6f0c2b9d41ae"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the band; trials that were recorded before have 0."""
    op.add_column("trials", sa.Column("loss_band", sa.Double(), nullable=False, server_default="0"))
    op.alter_column("trials", "loss_band", server_default=None)


def downgrade() -> None:
    """Forget the bands."""
    op.drop_column("trials", "loss_band")
