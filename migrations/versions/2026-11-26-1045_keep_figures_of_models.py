"""Keep the figures of models with the trials of whole plans.

Revision 8d41f6c0b9e2, after 5e0b93c7d2a8.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSON

revision = "8d41f6c0b9e2"
down_revision = "5e0b93c7d2a8"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Give trials the figures of their models; those that are there have none, and their curve is not drawn while they run."""
    op.add_column("trials", sa.Column("figures", JSON(), nullable=True))


def downgrade() -> None:
    """Forget the figures."""
    op.drop_column("trials", "figures")
