"""Keep the level table of a compression with its first budget's trial.

Revision c2f7a91d4e60, after 81c0d4f6a2b7.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "c2f7a91d4e60"
down_revision = "81c0d4f6a2b7"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Give trials the level table; those that are there have none, and their runs measure it again if they are resumed."""
    op.add_column("trials", sa.Column("levels", JSONB(), nullable=True))


def downgrade() -> None:
    """Forget the level tables; runs measure them again if they are resumed."""
    op.drop_column("trials", "levels")
