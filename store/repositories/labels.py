"""Labels of the rows of a finished job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from axformer.labels import agreed_labels
from axformer.scores.labelling import Labels
from axformer.wire.answer_sheet import Answer
from axformer.wire.labelling import LabellingRead
from store.tables.jobs import Job, RowLabel
from store.tables.teams import ApiKey


@dataclass(frozen=True)
class GivenLabel:
    """A label with who gave it, and when."""

    row_id: str
    key_id: str
    by: str | None
    """The name of the key; None if it is gone."""
    label: Answer
    at: datetime


def put_labels(session: Session, job_id: str, key_id: str, labels: Mapping[str, Answer | None]) -> None:
    """Write a person's labels by the ids of rows, in the place of earlier ones; None withdraws one."""
    mine = (RowLabel.job_id == job_id, RowLabel.key_id == key_id)
    gone = [row_id for row_id, label in labels.items() if label is None]
    session.execute(delete(RowLabel).where(*mine, RowLabel.row_id.in_(gone)))
    given = [
        {"job_id": job_id, "row_id": row_id, "key_id": key_id, "label": label}
        for row_id, label in labels.items()
        if label is not None
    ]
    if given:
        made = insert(RowLabel).values(given)
        changed = {"label": made.excluded.label, "given_at": func.now()}
        session.execute(
            made.on_conflict_do_update(
                index_elements=["job_id", "row_id", "key_id"], set_=changed, where=RowLabel.label != made.excluded.label
            )
        )


def labels_of(session: Session, job_id: str) -> Sequence[GivenLabel]:
    """All labels of a job, the oldest first."""
    query = (
        select(RowLabel.row_id, RowLabel.key_id, ApiKey.name, RowLabel.label, RowLabel.given_at)
        .outerjoin(ApiKey, ApiKey.id == RowLabel.key_id)
        .where(RowLabel.job_id == job_id)
        .order_by(RowLabel.given_at, RowLabel.row_id, RowLabel.key_id)
    )
    return [GivenLabel(*row) for row in session.execute(query)]


def labelled_of(job: Job | None) -> LabellingRead | None:
    """What labels had certified of a job when the last one was given; None before the first."""
    labelled = ((job and job.summary) or {}).get("labelled")
    return None if labelled is None else LabellingRead.model_validate(labelled, extra="ignore")


def agreed_on(given: Sequence[GivenLabel]) -> Labels:
    """The labels on which people agree, by row."""
    by_row: dict[str, list[Answer]] = {}
    for one in given:
        by_row.setdefault(one.row_id, []).append(one.label)
    return agreed_labels(by_row)
