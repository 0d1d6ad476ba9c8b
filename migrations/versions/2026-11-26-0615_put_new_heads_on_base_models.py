"""Put new heads on base models.

Revision 5b7e02c9d1a4, after c2f7a91d4e60.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "5b7e02c9d1a4"
down_revision = "c2f7a91d4e60"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Give jobs the head that their base model gets; the checkpoints of those that are there have their own."""
    op.add_column("jobs", sa.Column("head", JSONB(), nullable=True))


def downgrade() -> None:
    """Forget the heads; jobs with base models fail when they are run again."""
    op.drop_column("jobs", "head")
