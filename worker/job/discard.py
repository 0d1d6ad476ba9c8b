"""Remove the files of a job that ended without a result."""

import structlog

from store.errors import StoreError
from store.storage.storage import job_folder
from worker.base.context import WorkerContext
from worker.sandbox.workspace import remove_directories

_LOG = structlog.get_logger(__name__)


def discard(context: WorkerContext, job_id: str) -> None:
    """Remove a job's stored files and its private directories.

    The job has already ended, so a failure here is logged for the operator.
    """
    remove_directories(context.settings.work_dir, job_id)
    try:
        context.storage.delete(job_folder(job_id))
    except (StoreError, OSError) as error:
        _LOG.error("files_left_behind", folder=job_folder(job_id), error=str(error))
