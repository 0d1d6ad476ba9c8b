"""Keep the memory of each worker's device. What a job needs of it is in its ``spec``, under ``memory``.

Revision d81f6a3c04e7, after b4e27f0c9d16.
"""

import sqlalchemy as sa
from alembic import op

revision = "d81f6a3c04e7"
down_revision = "b4e27f0c9d16"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; workers fill it in when they next look for a job."""
    op.add_column("workers", sa.Column("memory", sa.BigInteger()))


def downgrade() -> None:
    """Drop it, and what is known of jobs, which earlier workers would refuse."""
    op.execute("UPDATE jobs SET spec = spec - 'memory' WHERE spec ? 'memory'")
    op.drop_column("workers", "memory")
