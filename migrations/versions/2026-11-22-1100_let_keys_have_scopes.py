"""Let keys have scopes and an end, and note who changed what.

Revision 1f6ad83b05c9, after 7c20f4a9d6b1.
"""

import sqlalchemy as sa
from alembic import op

revision = "1f6ad83b05c9"
down_revision = "7c20f4a9d6b1"
branch_labels = None
depends_on = None

SCOPES = ("read", "write", "admin")


def upgrade() -> None:
    """Add the columns and the table. Keys of before may do all that they could, for ever."""
    scope = sa.Enum(*SCOPES, name="scope", native_enum=False, create_constraint=True, length=16)
    op.add_column("api_keys", sa.Column("scope", scope, nullable=False, server_default="admin"))
    op.alter_column("api_keys", "scope", server_default=None)
    op.add_column("api_keys", _time("expires_at"))
    op.add_column("api_keys", sa.Column("replaced_by", sa.Text()))
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), primary_key=True),
        sa.Column("team_id", sa.Text(), sa.ForeignKey("teams.id", ondelete="CASCADE"), nullable=False),
        sa.Column("key_id", sa.Text()),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("object_id", sa.Text()),
        sa.Column("address", sa.Text()),
        sa.Column("times", sa.BigInteger(), nullable=False, server_default="1"),
        _time("hour"),
        _time("created_at", nullable=False, server_default=sa.func.now()),
        sa.UniqueConstraint("key_id", "action", "hour"),
    )
    op.create_index("ix_audit_team_id_id", "audit", ["team_id", "id"])


def downgrade() -> None:
    """Forget all of it. A key that could only read can do everything again, so those that are not for admins end."""
    op.execute("UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE scope <> 'admin'")
    op.execute("UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE expires_at IS NOT NULL")
    op.drop_table("audit")
    op.drop_column("api_keys", "replaced_by")
    op.drop_column("api_keys", "expires_at")
    op.drop_column("api_keys", "scope")


def _time(name: str, **more: object) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), **more)  # type: ignore[arg-type]
