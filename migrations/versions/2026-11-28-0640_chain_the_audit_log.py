"""Chain the audit log, let sessions end, let secrets of webhooks outlive their key, and let teams use credentials by name.

Revision b4e27f0c9d16, after 7c1d93e0b5a2.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "b4e27f0c9d16"
down_revision = "7c1d93e0b5a2"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and the table. Workers chain the entries that there are."""
    for column in (
        sa.Column("link", sa.BigInteger()),
        sa.Column("previous", sa.LargeBinary()),
        sa.Column("sha256", sa.LargeBinary()),
    ):
        op.add_column("audit", column)
    op.create_unique_constraint(op.f("uq_audit_link"), "audit", ["link"])
    op.drop_constraint("uq_audit_key_id_action_hour", "audit", type_="unique")
    refused, counted = sa.text("link IS NULL AND action = 'key.refused'"), sa.text("link IS NULL AND hour IS NOT NULL")
    op.create_index("ix_audit_refused", "audit", ["key_id", "hour"], unique=True, postgresql_where=refused)
    columns = ["key_id", "action", "object_id", "address", "hour"]
    op.create_index("ix_audit_counted", "audit", columns, unique=True, postgresql_where=counted)
    op.create_table(
        "ended_sessions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ended_sessions")),
    )
    op.add_column("webhook_secrets", sa.Column("sealed", sa.LargeBinary()))
    op.add_column("teams", sa.Column("grants", JSONB(), server_default=sa.text("'[]'"), nullable=False))


def downgrade() -> None:
    """Drop them; the chain, counts of one hour and key but one, and secrets of webhooks whose key is gone are lost."""
    op.drop_column("teams", "grants")
    op.execute("DELETE FROM webhook_secrets WHERE sealed IS NOT NULL")
    op.drop_column("webhook_secrets", "sealed")
    op.drop_table("ended_sessions")
    for name in ("counted", "refused"):
        op.drop_index(f"ix_audit_{name}", "audit")
    op.execute(
        "DELETE FROM audit USING audit AS other WHERE audit.key_id = other.key_id AND audit.action = other.action"
        " AND audit.hour = other.hour AND audit.id < other.id"
    )
    op.create_unique_constraint(op.f("uq_audit_key_id_action_hour"), "audit", ["key_id", "action", "hour"])
    op.drop_constraint(op.f("uq_audit_link"), "audit", type_="unique")
    for column in ("sha256", "previous", "link"):
        op.drop_column("audit", column)
