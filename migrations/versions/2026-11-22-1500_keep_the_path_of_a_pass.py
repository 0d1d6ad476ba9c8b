"""Keep the path of a pass beside its report.

Revision 8b42e07f1d5c, after 5d0b7c3e94a2.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "8b42e07f1d5c"
down_revision = "5d0b7c3e94a2"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("jobs", sa.Column("path", postgresql.JSONB(none_as_null=True)))


def downgrade() -> None:
    """Forget the paths; ``report.json`` holds them too."""
    op.drop_column("jobs", "path")
