"""Name the groups of jobs by labels, and forget the groups.

Revision 5b0e83d7a1c6, after 3c7e15a9d0b4.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "5b0e83d7a1c6"
down_revision = "3c7e15a9d0b4"
branch_labels = None
depends_on = None

NAME_GROUPS = """
    UPDATE jobs SET labels = labels || jsonb_build_object(
        CASE WHEN labels ? 'group' THEN 'group-name' ELSE 'group' END,
        name_of.name || CASE WHEN name_of.is_shared THEN ' (' || name_of.id || ')' ELSE '' END
    )
    FROM (SELECT id, name, count(*) OVER (PARTITION BY team_id, name) > 1 AS is_shared FROM groups) AS name_of
    WHERE jobs.group_id = name_of.id
"""
NAME_CELLS = """
    UPDATE jobs SET labels = place.labels || jobs.labels
    FROM (
        SELECT id, jsonb_strip_nulls(jsonb_build_object(
            'set', cell->>'set', 'setting', cell->>'setting', 'checkpoint', cell->>'checkpoint', 'seed', cell->>'seed'
        )) AS labels FROM jobs WHERE group_id IS NOT NULL AND cell IS NOT NULL
    ) AS place
    WHERE jobs.id = place.id AND (SELECT count(*) FROM jsonb_object_keys(place.labels || jobs.labels)) <= 16
"""
"""A job's own labels stay as they are; 16 is the most that a job is posted with."""


def upgrade() -> None:
    """Give each job of a group the labels ``group``, ``set``, ``setting``, ``checkpoint`` and ``seed``."""
    op.execute(NAME_GROUPS)
    op.execute(NAME_CELLS)
    op.drop_column("jobs", "cell")
    op.drop_column("jobs", "group_id")
    op.drop_table("groups")


def downgrade() -> None:
    """Let there be groups again, without any; the labels stay."""
    op.create_table(
        "groups",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("team_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("grid", postgresql.JSONB(none_as_null=True), nullable=False),
        sa.Column("idempotency_key", sa.Text()),
        sa.Column("body_sha256", sa.LargeBinary()),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name=op.f("fk_groups_team_id_teams")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_groups")),
        sa.UniqueConstraint("team_id", "idempotency_key", name=op.f("uq_groups_team_id_idempotency_key")),
    )
    op.add_column("jobs", sa.Column("group_id", sa.Text()))
    op.add_column("jobs", sa.Column("cell", postgresql.JSONB(none_as_null=True)))
    op.create_foreign_key(op.f("fk_jobs_group_id_groups"), "jobs", "groups", ["group_id"], ["id"])
    op.create_index(op.f("ix_jobs_group_id"), "jobs", ["group_id"], postgresql_where=sa.text("group_id IS NOT NULL"))
