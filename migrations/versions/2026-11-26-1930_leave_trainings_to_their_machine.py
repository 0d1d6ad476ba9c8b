"""Leave jobs that train to the machine that has the state of their trainings.

Revision 3c7e15a9d0b4, after 8d41f6c0b9e2.
"""

import sqlalchemy as sa
from alembic import op

revision = "3c7e15a9d0b4"
down_revision = "8d41f6c0b9e2"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Let jobs and workers name their machine; of those that are there none is known, so any machine takes them."""
    op.add_column("jobs", sa.Column("machine", sa.Text(), nullable=True))
    now = sa.func.now()
    op.add_column("jobs", sa.Column("queued_at", sa.DateTime(timezone=True), server_default=now, nullable=False))
    op.add_column("workers", sa.Column("machine", sa.Text(), nullable=True))


def downgrade() -> None:
    """Forget the machines."""
    op.drop_column("workers", "machine")
    op.drop_column("jobs", "queued_at")
    op.drop_column("jobs", "machine")
