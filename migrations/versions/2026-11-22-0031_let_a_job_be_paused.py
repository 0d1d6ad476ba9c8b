"""Let a job be paused: two more states.

Revision 83d0c6f1e7b2, after c4d7a91e5b30.
"""

import sqlalchemy as sa
from alembic import op

revision = "83d0c6f1e7b2"
down_revision = "c4d7a91e5b30"
branch_labels = None
depends_on = None

BEFORE = (
    "queued",
    "fetching",
    "validating",
    "running",
    "packaging",
    "cancelling",
    "succeeded",
    "failed",
    "cancelled",
)
AFTER = (*BEFORE[:5], "pausing", "paused", *BEFORE[5:])
ACTIVE = ("cancelling", "fetching", "packaging", "running", "validating")


def upgrade() -> None:
    """Allow the states; a job that is being paused is held by a worker."""
    _allow(AFTER)
    _index_leases(("cancelling", "fetching", "packaging", "pausing", "running", "validating"))


def downgrade() -> None:
    """Queue what is paused: it would wait for ever."""
    op.execute(
        "UPDATE jobs SET state = 'queued', fence = fence + 1, worker = NULL, lease_until = NULL"
        " WHERE state IN ('pausing', 'paused')"
    )
    _allow(BEFORE)
    _index_leases(ACTIVE)


def _allow(states: tuple[str, ...]) -> None:
    op.drop_constraint(op.f("ck_jobs_state"), "jobs", type_="check")
    op.create_check_constraint(op.f("ck_jobs_state"), "jobs", f"state IN ({_listed(states)})")


def _index_leases(states: tuple[str, ...]) -> None:
    op.drop_index("ix_jobs_leases", "jobs")
    op.create_index(
        "ix_jobs_leases", "jobs", ["lease_until"], postgresql_where=sa.text(f"state IN ({_listed(states)})")
    )


def _listed(states: tuple[str, ...]) -> str:
    return ", ".join(f"'{state}'" for state in states)
