"""Labels of the changed answers of finished jobs, and the certificate that follows from them."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from pydantic import ValidationError
from sqlalchemy.exc import NoResultFound
from sqlalchemy.orm import Session

from api.errors import ApiError, FieldError, InvalidInputError, NoSuchObjectError, Refusals, WrongStateError
from api.services import artifacts, exports, jobs
from axformer.errors import DataError
from axformer.labels import named
from axformer.scores.certificate import certificate_of, next_told
from axformer.scores.labelling import Labels, PathStanding, forms_of, label_of, most_labels, standing_of
from axformer.wire.answer_sheet import SHEET, Answer, AnswerSheet, ChangedRow
from axformer.wire.base import NAME_LENGTH
from axformer.wire.jobs import ExportCreate
from axformer.wire.labelling import (
    FormStandingRead,
    LabelExportRead,
    LabellingRead,
    LabelsCreate,
    NeededRead,
    NeededRow,
)
from axformer.wire.metrics import REGRESSION
from axformer.wire.states import JobKind
from store.repositories.audit import note
from store.repositories.jobs import find_job
from store.repositories.keys import Caller
from store.repositories.labels import GivenLabel, agreed_on, labelled_of, labels_of, put_labels
from store.repositories.moves import lock_job
from store.repositories.steering import request_cancel
from store.settings import Settings
from store.states import JobState
from store.storage.storage import Storage
from store.tables.jobs import Job

_MOST_BYTES = 64 << 20
"""Of a sheet that is read; far above that of 100,000 changed answers."""
_SHEETS = 8
"""Sheets that are kept in memory."""


@dataclass(frozen=True)
class Labelling:
    """A job's answer sheet with everything that people said."""

    job: Job
    sheet: AnswerSheet
    given: Sequence[GivenLabel]

    @cached_property
    def by_row(self) -> dict[str, list[GivenLabel]]:
        """The labels of each row that has any."""
        found: dict[str, list[GivenLabel]] = {}
        for one in self.given:
            found.setdefault(one.row_id, []).append(one)
        return found

    @cached_property
    def agreed(self) -> Labels:
        """The labels on which people agree."""
        return agreed_on(self.given)

    @cached_property
    def standings(self) -> list[PathStanding]:
        """How far each form is certified."""
        return [standing_of(self.sheet, form, self.agreed) for form in forms_of(self.sheet)]

    def needed(self, person: str | None = None) -> list[ChangedRow]:
        """The rows that are asked for, those of the last form first. Where people disagree, others are not asked.

        Args:
            person: anything that tells people apart, who then begin at different rows, but for numbers, whose order counts.
        """
        start, rows = zlib.crc32((person or "").encode()), dict[str, ChangedRow]()
        for standing in reversed(self.standings):
            some = standing.needed
            if person is not None and self.sheet.task != REGRESSION:
                some = sorted(some, key=lambda row: (zlib.crc32(row.id.encode()) - start) % 2**32)
            rows |= {row.id: row for row in some if row.id not in self.by_row}
        return list(rows.values())

    @property
    def disagreed(self) -> list[ChangedRow]:
        """The rows on which people disagree."""
        return [row for row in self.sheet.changed if row.id in self.by_row and row.id not in self.agreed]

    @cached_property
    def read(self) -> LabellingRead:
        """What is certified, and what has been exported so far."""
        known, forms = labelled_of(self.job), [self._form(standing) for standing in self.standings]
        exported = [] if known is None else known.exports
        return LabellingRead(labels=len(self.agreed), disagreed=len(self.disagreed), forms=forms, exports=exported)

    def _form(self, standing: PathStanding) -> FormStandingRead:
        sheet, labels, upcoming = self.sheet, self.agreed, standing.upcoming
        certified = [model.seq for model in sheet.models if model.form == standing.form][: standing.passed]
        counted = [] if upcoming is None else [row for row in sheet.changed if row.place in upcoming.answers]
        return FormStandingRead(
            form=standing.form,
            certificate=certificate_of(sheet, standing, labels).model_dump(mode="json"),
            times=None if standing.kept is None else standing.kept.times,
            certified=certified,
            next=next_told(standing, sheet.task),
            best_p_value=standing.best_p_value,
            labelled=sum(row.label is None and row.id in labels for row in counted),
            left=len(standing.needed),
            further={model.seq: most for model, most in most_labels(sheet, standing.form, labels)},
        )


def certified_from_labels(session: Session, export: Job) -> FormStandingRead | None:
    """The certificate that labels of the original job give an exported model; None without one."""
    source = None if export.exported_from is None else find_job(session, export.exported_from, export.team_id)
    known = labelled_of(source)
    return next((form for form in reversed(known.forms) if export.upto in form.certified), None) if known else None


def find(session: Session, storage: Storage, team_id: str, job_id: str) -> Labelling:
    """The sheet and the labels of the team's job.

    Raises:
        NoSuchObjectError: the team has no such job.
        WrongStateError: it has no sheet that can be labelled.
    """
    return labelling_of(session, storage, jobs.find(session, team_id, job_id))


def labelling_of(session: Session, storage: Storage, job: Job) -> Labelling:
    """The same of a job that was found."""
    if job.kind is JobKind.EXPORT:
        raise _no_sheet(f"{job.id} hands out a model of {job.exported_from}; label the answers of that job")
    try:
        found = artifacts.download(session, storage, job.team_id, job.id, SHEET)
        if found.size > _MOST_BYTES:
            raise _no_sheet(f"the {SHEET} of {job.id} has {found.size:,} bytes; post the job again")
        sheet = _sheet(_Stored(found.sha256, lambda: b"".join(found.read(0, found.size))))
    except NoSuchObjectError as error:
        raise _no_sheet(f"{error}; a job with unlabelled rows has it, as long as its files are kept") from None
    except ValidationError:
        raise _no_sheet(f"the {SHEET} of {job.id} cannot be read; post the job again") from None
    return Labelling(job, sheet, labels_of(session, job.id))


def _no_sheet(detail: str) -> WrongStateError:
    return WrongStateError(detail, code="no_answer_sheet")


@dataclass(frozen=True)
class _Stored:
    sha256: str
    read: Callable[[], bytes] = field(compare=False)


@lru_cache(maxsize=_SHEETS)
def _sheet(stored: _Stored) -> AnswerSheet:
    return AnswerSheet.model_validate_json(stored.read())


def needed_of(found: Labelling) -> NeededRead:
    """The rows whose labels may certify more."""

    def told(one: GivenLabel) -> dict[str, Any]:
        return {"by": one.by or one.key_id, "label": named(found.sheet, one.label), "at": one.at}

    return NeededRead(
        **dict(found.read),
        task=found.sheet.task,
        classes=found.sheet.classes,
        data=[NeededRow(id=row.id, inputs=row.inputs) for row in found.needed()],
        disagreements=[
            NeededRow(id=row.id, inputs=row.inputs, labels=list(map(told, found.by_row[row.id])))
            for row in found.disagreed
        ],
    )


def give(
    session: Session, storage: Storage, settings: Settings, caller: Caller, job_id: str, body: LabelsCreate
) -> tuple[Labelling, bool]:
    """Store a person's labels, and queue the export of a model that is certified now, if it is smaller than the result.

    Returns:
        What has become of the job, and whether an export was queued.

    Raises:
        NoSuchObjectError: the team has no such job.
        WrongStateError: it has no sheet that can be labelled.
        InvalidInputError: a row is none of the sheet, or a label none of its task; nothing is stored then.
    """
    try:
        job = lock_job(session, jobs.find(session, caller.team_id, job_id).id)
    except NoResultFound:
        raise jobs.no_job(job_id) from None
    found = labelling_of(session, storage, job)
    put_labels(session, job.id, caller.key_id, _checked(found.sheet, body))
    note(session, caller, "job.label", job.id)
    found = replace(found, given=labels_of(session, job.id))
    known = [one for one in found.read.exports if one.job is not None]
    wanted = _smaller(found)
    missing = {seq: times for seq, times in wanted.items() if seq not in {one.seq for one in known}}
    step = session.begin_nested()  # a full queue has room for an export in the place of another
    left = [one for one in known if not missing or one.seq in wanted or not _cancelled(session, one)]
    new = [_queued(session, settings, job, seq, times) for seq, times in missing.items()]
    is_queued = any(one.job is not None for one in new)
    if is_queued:
        step.commit()
    else:
        step.rollback()
    read = found.read.model_copy(update={"exports": [*(left if is_queued else known), *new]})
    job.summary = {**(job.summary or {}), "labelled": read.model_dump(mode="json")}
    return replace(found), is_queued


def _checked(sheet: AnswerSheet, body: LabelsCreate) -> dict[str, Answer | None]:
    """The labels by row, all of them right, or an error that names every wrong one."""
    rows, refusals = {row.id: row for row in sheet.changed}, Refusals()
    found: dict[str, Answer | None] = {}
    for place, one in enumerate(body.data):
        with refusals.gathered():
            row = rows.get(one.id)
            if row is None:
                detail = f"row '{one.id}' is none whose answer changed in this result; take the ids of its needed rows"
                raise _wrong(detail, f"#/data/{place}/id")
            if one.id in found:
                raise _wrong(f"row '{one.id}' has two labels in one request; send one", f"#/data/{place}/id")
            try:
                found[one.id] = None if one.label is None else label_of(sheet, row, one.label)
            except DataError as error:
                raise _wrong(str(error), f"#/data/{place}/label") from None
    refusals.check()
    return found


def _wrong(detail: str, pointer: str) -> InvalidInputError:
    return InvalidInputError(detail, code="invalid_label", errors=[FieldError(detail, pointer=pointer)])


def _smaller(found: Labelling) -> Mapping[int, float]:
    """The certified models that are smaller than the result, by their trials: how many times fewer operations they have."""
    kept = next((point["seq"] for point in found.job.path or [] if point.get("kept")), 0)
    least = max((model.times for model in found.sheet.models if model.seq == kept), default=1.0)
    models = [standing.kept for standing in found.standings if standing.kept is not None]
    return {model.seq: model.times for model in models if model.times > least}


def _cancelled(session: Session, export: LabelExportRead) -> bool:
    """Cancel an export that a better one is to replace, if no worker has begun it."""
    assert export.job is not None, "only of exports that are known"
    try:
        job = lock_job(session, export.job)
    except NoResultFound:
        return True  # deleted in the meantime
    if job.state is JobState.QUEUED:
        request_cancel(session, job.id)
    return job.state is JobState.CANCELLED


def _queued(session: Session, settings: Settings, job: Job, seq: int, times: float) -> LabelExportRead:
    name = f"{job.name[: NAME_LENGTH - 40]}, trial {seq}, certified by labels"
    body = ExportCreate(name=name, forms=job.spec["forms"])
    try:
        with session.begin_nested():
            made = exports.submit(session, settings, job.team_id, job.id, seq, body, None).job
        return LabelExportRead(seq=seq, times=times, job=made.id)
    except ApiError as error:
        return LabelExportRead(seq=seq, times=times, job=None, error=error.detail)
