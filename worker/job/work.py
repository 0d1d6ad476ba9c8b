"""A claimed job with an open process, and everything needed to carry it out."""

from collections.abc import Callable
from dataclasses import dataclass

from store.tables.jobs import Job
from worker.base.context import WorkerContext
from worker.job.conversation import Conversation
from worker.job.lease import Lease
from worker.job.ledger import Ledger
from worker.job.open_job import OpenJob
from worker.job.step_writer import StepWriter
from worker.job.time_slice import TimeSlice


@dataclass(frozen=True)
class Work:
    """The argument of the kinds of jobs in ``worker.job.kinds``."""

    context: WorkerContext
    job: Job
    opened: OpenJob
    ledger: Ledger
    lease: Lease

    tell: StepWriter
    """Writes what the process does at the moment."""

    time_slice: TimeSlice
    """When other jobs get their turn."""

    def conversation(self, flush: Callable[[], None] = lambda: None) -> Conversation:
        """The conversation with the job's process, whose steps are written to the database.

        Args:
            flush: writes what is pending, before a step is written and before the job is queued again.
        """
        return Conversation(self.opened.sandbox, self.lease.check_stop, self.time_slice, self.tell, flush)
