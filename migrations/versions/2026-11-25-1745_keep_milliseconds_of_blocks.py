"""Keep what blocks cost in milliseconds with the base trial of a run that chooses by latency.

Revision 81c0d4f6a2b7, after 8d27c05e9b1f.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "81c0d4f6a2b7"
down_revision = "8d27c05e9b1f"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Give trials the milliseconds; those that are there have none."""
    op.add_column("trials", sa.Column("milliseconds", JSONB(), nullable=True))


def downgrade() -> None:
    """Forget the milliseconds; the models that were chosen by them stay."""
    op.drop_column("trials", "milliseconds")
