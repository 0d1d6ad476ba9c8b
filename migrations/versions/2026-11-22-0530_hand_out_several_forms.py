"""Hand out several forms: a job says in which ones its result is.

Revision 7c20f4a9d6b1, after 5e1d7b90c2a4.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "7c20f4a9d6b1"
down_revision = "5e1d7b90c2a4"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; jobs of before have the compact form alone."""
    op.add_column("jobs", sa.Column("forms", JSONB(), nullable=False, server_default='["compact"]'))


def downgrade() -> None:
    """Forget which forms there are; their files stay."""
    op.drop_column("jobs", "forms")
