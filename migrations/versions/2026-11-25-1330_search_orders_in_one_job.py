"""Search orders in one job, and name the kinds of jobs.

Revision 9c4e7d10b6a5, after 3f6d92b8a1e7. Trials get the number of their pass. A search that has ended keeps its trace,
its files and the progress of its passes; one that has not begins again.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "9c4e7d10b6a5"
down_revision = "3f6d92b8a1e7"
branch_labels = None
depends_on = None

KINDS = ("pass", "export", "analysis")
WORKING = ["fetching", "validating", "running", "packaging"]
TERMINAL = ["succeeded", "failed", "cancelled"]
UNENDED = ["queued", *WORKING, "pausing", "paused", "cancelling"]
AGAIN = "it begins again: a search of orders runs in one job now"
RETRY = (
    "the service went back to a version that runs each order as a job of its own, which cannot go on with this search; "
    "retry it"
)
SUM_UP = """
    UPDATE jobs SET progress = best.progress - 'known_at_first'
        || jsonb_build_object('done', sums.done, 'known', sums.done, 'seconds', sums.seconds, 'seconds_left', 0)
        || '{"pass_number": 6, "passes": 6}'
    FROM (SELECT DISTINCT ON (parent_id) parent_id, progress FROM jobs WHERE progress->>'min_loss' IS NOT NULL
            ORDER BY parent_id, (progress->>'min_loss')::double precision) AS best,
        (SELECT parent_id, sum((progress->>'done')::bigint) AS done,
            sum((progress->>'seconds')::double precision) AS seconds FROM jobs GROUP BY parent_id) AS sums
    WHERE jobs.id = best.parent_id AND jobs.id = sums.parent_id AND jobs.state = ANY(:terminal)
"""
FORGET_TRIALS = """
    DELETE FROM trials USING jobs
    WHERE job_id = jobs.id AND jobs.config->>'order' = 'search' AND jobs.state != ALL(:terminal)
"""
MOVE = """
    WITH moved AS (
        UPDATE jobs SET state = :state, status_reason = :reason, attempt = 0, fence = fence + 1, worker = NULL,
            lease_until = NULL, claimed_at = NULL, progress = NULL, event_count = event_count + 1,
            finished_at = CASE WHEN :state = ANY(:terminal) THEN now() END,
            hub_token = CASE WHEN :state != ALL(:terminal) THEN hub_token END
        WHERE config->>'order' = 'search' AND state = ANY(:before) RETURNING id, event_count
    )
    INSERT INTO events (job_id, seq, type, data) SELECT id, event_count, 'job.' || :state,
        jsonb_strip_nulls(jsonb_build_object('state', CAST(:state AS text), 'reason', CAST(:reason AS text))) FROM moved
"""
FAIL = """
    UPDATE jobs SET error = jsonb_build_object('code', 'internal_error', 'message', CAST(:message AS text), 'retryable', true)
    WHERE config->>'order' = 'search' AND state = ANY(:unended)
"""


def upgrade() -> None:
    """Number the passes, name the kinds, and make each search of orders one job."""
    op.add_column("trials", sa.Column("pass_number", sa.BigInteger(), nullable=False, server_default="1"))
    _key_trials_by("job_id", "pass_number", "seq")
    op.add_column("jobs", sa.Column("shown_pass", sa.BigInteger(), nullable=False, server_default="1"))
    kind = sa.Enum(*KINDS, native_enum=False, length=16, create_constraint=True, name=op.f("ck_jobs_kind"))
    op.add_column("jobs", sa.Column("kind", kind, nullable=False, server_default="pass"))
    op.execute("UPDATE jobs SET kind = 'export' WHERE exported_from IS NOT NULL")
    _run(SUM_UP, terminal=TERMINAL)
    _run(FORGET_TRIALS, terminal=TERMINAL)
    op.execute("DELETE FROM jobs WHERE parent_id IS NOT NULL")
    _move("queued", WORKING, AGAIN)
    _move("paused", ["pausing"], AGAIN)
    _move("cancelled", ["cancelling"], None)
    op.execute("INSERT INTO outbox (job_id) SELECT id FROM jobs WHERE state = 'queued' AND config->>'order' = 'search'")
    op.drop_column("jobs", "parent_id")


def downgrade() -> None:
    """Fail the searches that have not ended, and forget the trials of passes that are not shown."""
    op.add_column("jobs", sa.Column("parent_id", sa.Text()))
    op.create_foreign_key("fk_jobs_parent_id_jobs", "jobs", "jobs", ["parent_id"], ["id"], ondelete="CASCADE")
    op.create_index("ix_jobs_parent_id", "jobs", ["parent_id"])
    _run(FAIL, message=RETRY, unended=UNENDED)
    _move("failed", UNENDED, RETRY)
    op.execute("DELETE FROM trials USING jobs WHERE job_id = jobs.id AND pass_number <> shown_pass")
    _key_trials_by("job_id", "seq")
    op.drop_column("trials", "pass_number")
    op.drop_column("jobs", "shown_pass")
    op.drop_column("jobs", "kind")


def _key_trials_by(*columns: str) -> None:
    op.drop_constraint("pk_trials", "trials", type_="primary")
    op.create_primary_key("pk_trials", "trials", list(columns))


def _move(state: str, before: list[str], reason: str | None) -> None:
    """Put every search that is in one of some states into another, without a worker, and with the event that says so."""
    _run(MOVE, state=state, before=before, reason=reason, terminal=TERMINAL)


def _run(statement: str, **values: Any) -> None:
    types = {name: sa.ARRAY(sa.Text()) if isinstance(value, list) else sa.Text() for name, value in values.items()}
    bound = (sa.bindparam(name, value, types[name]) for name, value in values.items())
    op.execute(sa.text(statement).bindparams(*bound))
