"""Leave one pass to each job: a search of orders keeps the one that is shown.

Revision 7e19c4b2f860, after 5b0e83d7a1c6. A search that has succeeded becomes a run in the order that was kept. One that has
not ended keeps its knobs, which a worker refuses with the reason.
"""

import sqlalchemy as sa
from alembic import op

revision = "7e19c4b2f860"
down_revision = "5b0e83d7a1c6"
branch_labels = None
depends_on = None

FORGET_OTHER_PASSES = """
    DELETE FROM trials USING jobs WHERE trials.job_id = jobs.id AND trials.pass_number <> jobs.shown_pass
"""
COUNT_TRIALS = """
    UPDATE jobs SET progress = jobs.progress || jsonb_build_object(
        'done', kept.done, 'known', kept.done, 'seconds', kept.seconds, 'min_loss', kept.least
    )
    FROM (
        SELECT job_id, count(*) AS done, max(seconds) AS seconds,
            min(loss) FILTER (WHERE verdict IN ('base', 'accept')) AS least
        FROM trials JOIN jobs AS searches ON searches.id = job_id
        WHERE searches.config->>'order' = 'search' AND searches.state IN ('succeeded', 'failed', 'cancelled') GROUP BY job_id
    ) AS kept
    WHERE jobs.id = kept.job_id AND jobs.progress IS NOT NULL
"""
FORGET_NUMBERS = """
    UPDATE jobs SET progress = progress - ARRAY['pass_number', 'passes', 'order']
    WHERE progress ?| ARRAY['pass_number', 'passes']
"""
NAME_THE_ORDER = """
    UPDATE jobs SET config = jobs.config || jsonb_build_object('order', kept.result->'order')
    FROM (
        SELECT id, jsonb_path_query_first(summary, '$.orders[*] ? (@.kept == true)') AS result FROM jobs
        WHERE config->>'order' = 'search' AND state = 'succeeded'
    ) AS kept
    WHERE jobs.id = kept.id AND kept.result IS NOT NULL
"""


def upgrade() -> None:
    """Keep the trials of the pass that is shown, and name its order in the knobs of a search that has succeeded."""
    for statement in (FORGET_OTHER_PASSES, COUNT_TRIALS, FORGET_NUMBERS, NAME_THE_ORDER):
        op.execute(statement)
    _key_trials_by("job_id", "seq")
    op.drop_column("trials", "pass_number")
    op.drop_column("jobs", "shown_pass")


def downgrade() -> None:
    """Number the pass of each job; what the others were is forgotten."""
    op.add_column("trials", sa.Column("pass_number", sa.BigInteger(), nullable=False, server_default="1"))
    _key_trials_by("job_id", "pass_number", "seq")
    op.add_column("jobs", sa.Column("shown_pass", sa.BigInteger(), nullable=False, server_default="1"))


def _key_trials_by(*columns: str) -> None:
    op.drop_constraint("pk_trials", "trials", type_="primary")
    op.create_primary_key("pk_trials", "trials", list(columns))
