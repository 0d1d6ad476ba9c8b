"""Keep what a job does as one value.

Revision 8d41f6c2b7e9, after 7e19c4b2f860.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "8d41f6c2b7e9"
down_revision = "7e19c4b2f860"
branch_labels = None
depends_on = None

KEEP_RUNS = """
    UPDATE jobs SET spec = jsonb_build_object(
        'run', (SELECT jsonb_object_agg(key, value) FROM jsonb_each(jsonb_build_object(
            'checkpoint', checkpoint, 'validation', validation, 'test', test, 'calibrate', calibrate, 'train', train,
            'finetune', finetune, 'head', head, 'preset', preset, 'config', config, 'forms', forms
        )) WHERE value <> 'null'),
        'preset', preset, 'config', config, 'finetune', finetune, 'forms', forms
    ) WHERE kind <> 'analysis'
"""
KEEP_ANALYSES = """
    UPDATE jobs SET spec = jsonb_build_object('run', (SELECT jsonb_object_agg(key, value) FROM jsonb_each(jsonb_build_object(
        'checkpoint', checkpoint, 'validation', validation, 'train', train, 'against', against,
        'reports', analysis->'reports', 'rows', analysis->'rows', 'max_length', config->'max_length'
    )) WHERE value <> 'null')) WHERE kind = 'analysis'
"""
FORMER = ("test", "calibrate", "train", "finetune", "against", "analysis", "head")
"""Columns that may be null."""


def upgrade() -> None:
    """Put the columns of what a job does into ``spec``: as it was posted, as far as that is known, and what it means."""
    op.add_column("jobs", sa.Column("spec", JSONB(none_as_null=True)))
    op.execute(KEEP_RUNS)
    op.execute(KEEP_ANALYSES)
    op.alter_column("jobs", "spec", nullable=False)
    for name in ("checkpoint", "validation", *FORMER, "preset", "config", "forms"):
        op.drop_column("jobs", name)


def downgrade() -> None:
    """Give every part its column again; goals and what else was posted are forgotten."""
    for name in ("checkpoint", "validation", *FORMER, "config"):
        op.add_column("jobs", sa.Column(name, JSONB(none_as_null=True)))
    op.add_column("jobs", sa.Column("preset", sa.Text()))
    op.add_column("jobs", sa.Column("forms", JSONB(none_as_null=True), server_default='["compact"]'))
    op.execute(
        "UPDATE jobs SET (checkpoint, validation, test, calibrate, train, against, head) = (SELECT r.* FROM "
        "jsonb_to_record(spec->'run') AS r(checkpoint jsonb, validation jsonb, test jsonb, calibrate jsonb, train jsonb, "
        "against jsonb, head jsonb))"
    )
    op.execute(
        "UPDATE jobs SET preset = coalesce(spec->>'preset', 'paper'), finetune = nullif(spec->'finetune', 'null'), "
        "forms = coalesce(spec->'forms', '[]'), config = coalesce(spec->'config', "
        "jsonb_build_object('max_length', spec->'run'->'max_length'))"
    )
    op.execute(
        "UPDATE jobs SET analysis = jsonb_build_object('reports', spec->'run'->'reports', 'rows', spec->'run'->'rows') "
        "WHERE kind = 'analysis'"
    )
    for name in ("checkpoint", "validation", "config", "preset", "forms"):
        op.alter_column("jobs", name, nullable=False)
    op.drop_column("jobs", "spec")
