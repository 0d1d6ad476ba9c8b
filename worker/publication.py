"""The last part of every job that hands out a model: what its process publishes is checked, stored, and made the job's."""

from contextlib import ExitStack

from pydantic import ValidationError

from axformer.wire.report import Report
from store.states import JobState
from store.tables.artifacts import Artifact
from worker.packing import ARCHIVE_NAME, store_files
from worker.sandbox.delivery import DeliveryError, delivered
from worker.sandbox.errors import ProcessMisbehavedError
from worker.sandbox.messages import Published, Searched, storable_json
from worker.work import Work

RESULT = "artifact"
"""Directory in which the process puts the result."""


def publish(work: Work, searched: Searched) -> None:
    """Wait for the files, store them, and let the job succeed.

    Raises:
        ProcessMisbehavedError: they are not those of a result, or the pass that is kept is none of the job's.
    """
    if searched.kept_pass > work.opened.pass_count:
        raise ProcessMisbehavedError(f"pass {searched.kept_pass} of {work.opened.pass_count} is kept")
    if searched.note is not None:
        work.ledger.note("job.noted", {"notes": [searched.note]})
    work.conversation.trained()
    work.ledger.enter(JobState.PACKAGING)
    published = work.conversation.published()
    work.opened.sandbox.end_process()
    report = _checked(published)
    work.ledger.succeed(report, _store(work), searched.kept_pass)


def _checked(published: Published) -> dict[str, object]:
    """The report, if it is one and can be stored."""
    try:
        return storable_json(Report.model_validate(published.report))
    except (ValidationError, ValueError) as error:
        raise ProcessMisbehavedError(f"its report is none: {type(error).__name__}") from None


def _store(work: Work) -> list[Artifact]:
    sandbox, context = work.opened.sandbox, work.context
    with ExitStack() as files:
        try:
            found = delivered(sandbox.made / RESULT, files, context.settings.result_max_bytes)
        except DeliveryError as error:
            raise ProcessMisbehavedError(f"its result holds {error}") from None
        archive = sandbox.directory / ARCHIVE_NAME
        return store_files(found, archive, work.job.id, context.storage, work.lease.check)
