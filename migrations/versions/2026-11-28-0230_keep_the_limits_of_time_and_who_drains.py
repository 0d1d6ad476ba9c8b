"""Keep a team's limit of time for a job, which workers drain, and when their periodic threads last succeeded.

Revision 7c1d93e0b5a2, after 4a7d20c96e1f.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "7c1d93e0b5a2"
down_revision = "4a7d20c96e1f"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("teams", sa.Column("seconds_limit", sa.BigInteger()))
    op.create_check_constraint(op.f("ck_teams_seconds_limit"), "teams", "seconds_limit > 0")
    op.add_column("workers", sa.Column("is_draining", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column("workers", sa.Column("succeeded_at", JSONB()))


def downgrade() -> None:
    """Drop them; the limits are lost."""
    op.drop_column("workers", "succeeded_at")
    op.drop_column("workers", "is_draining")
    op.drop_constraint(op.f("ck_teams_seconds_limit"), "teams", type_="check")
    op.drop_column("teams", "seconds_limit")
