"""Keep what lists show of a report in a column of its own, so that they need not read the whole.

Revision 3f6d92b8a1e7, after e7a05c61b9d4.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "3f6d92b8a1e7"
down_revision = "e7a05c61b9d4"
branch_labels = None
depends_on = None

SHOWN = ("base", "pruned", "comparison", "finding", "estimated_speedup", "seconds", "orders", "finetune")


def upgrade() -> None:
    """Add the column, and fill it from the reports there are."""
    op.add_column("jobs", sa.Column("summary", postgresql.JSONB(none_as_null=True)))
    fill = sa.text(
        "UPDATE jobs SET summary ="
        " coalesce((SELECT jsonb_object_agg(key, value) FROM jsonb_each(report) WHERE key = ANY(:shown)), '{}')"
        " || jsonb_build_object('removed_count', jsonb_array_length(coalesce(report->'removed', '[]')),"
        " 'hard_attention_count', jsonb_array_length(coalesce(report->'hard_attention', '[]')))"
        " WHERE report IS NOT NULL"
    )
    op.execute(fill.bindparams(sa.bindparam("shown", list(SHOWN), sa.ARRAY(sa.Text()))))


def downgrade() -> None:
    """Forget the summaries; the reports hold all that is in them."""
    op.drop_column("jobs", "summary")
