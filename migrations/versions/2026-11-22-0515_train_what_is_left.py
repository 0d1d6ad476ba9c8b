"""Train what a pass has left: a job may name data to learn from, and how.

Revision 5e1d7b90c2a4, after c94b20a7d518.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "5e1d7b90c2a4"
down_revision = "c94b20a7d518"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; jobs of before train nothing."""
    op.add_column("jobs", sa.Column("train", JSONB()))
    op.add_column("jobs", sa.Column("finetune", JSONB()))


def downgrade() -> None:
    """Forget what was to be trained; such jobs end without."""
    op.drop_column("jobs", "finetune")
    op.drop_column("jobs", "train")
