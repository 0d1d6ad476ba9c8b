"""The last step of every job: check what its process publishes, store it, and end the job."""

from contextlib import ExitStack
from shutil import rmtree

from pydantic import ValidationError

from axformer.wire.analysis import Analysis
from axformer.wire.report import Report
from store.states import JobState
from store.tables.artifacts import Artifact
from worker.base.packing import ARCHIVE_NAME, store_files
from worker.job.work import Work
from worker.sandbox.delivery import DeliveryError, delivered
from worker.sandbox.errors import ProcessMisbehavedError
from worker.sandbox.messages import Published, Searched, storable_json

RESULT = "artifact"
"""Directory that the process writes the result to."""


def publish(work: Work, searched: Searched) -> None:
    """Wait for the files, store them, and record the success of the job.

    Raises:
        ProcessMisbehavedError: the files are not a result.
    """
    work.conversation().trained()
    if searched.note is not None:
        work.ledger.note("job.noted", {"notes": [searched.note]})
    _publish(work, Report)


def publish_analysis(work: Work) -> None:
    """Wait for the reports of an analysis, store them, and record the success of the job.

    Raises:
        ProcessMisbehavedError: the files are not an analysis.
    """
    work.conversation().trained()
    _publish(work, Analysis)


def _publish(work: Work, shape: type[Report | Analysis]) -> None:
    work.ledger.enter(JobState.PACKAGING)
    published = work.conversation().published()
    work.opened.sandbox.end_process()
    report = _checked(published, shape)
    work.ledger.succeed(report, _store(work))
    rmtree(work.opened.sandbox.state, ignore_errors=True)


def _checked(published: Published, shape: type[Report | Analysis]) -> dict[str, object]:
    """Check that the report is valid and can be stored."""
    try:
        return storable_json(shape.model_validate(published.report))
    except (ValidationError, ValueError) as error:
        raise ProcessMisbehavedError(f"its report is not valid: {type(error).__name__}") from None


def _store(work: Work) -> list[Artifact]:
    sandbox, context = work.opened.sandbox, work.context
    with ExitStack() as files:
        try:
            result = delivered(sandbox.made / RESULT, files, context.settings.result_max_bytes)
        except DeliveryError as error:
            raise ProcessMisbehavedError(f"its result is refused: {error}") from None
        archive = sandbox.directory / ARCHIVE_NAME
        return store_files(result, archive, work.job.id, context.storage, work.lease.check)
