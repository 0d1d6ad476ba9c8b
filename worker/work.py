"""A claimed job with an open process, and everything needed to carry it out."""

from dataclasses import dataclass

from store.tables.jobs import Job
from worker.context import WorkerContext
from worker.conversation import Conversation
from worker.lease import Lease
from worker.ledger import Ledger
from worker.open_job import OpenJob


@dataclass(frozen=True)
class Work:
    """The argument of the kinds of jobs in ``worker.kinds``."""

    context: WorkerContext
    job: Job
    opened: OpenJob
    ledger: Ledger
    lease: Lease

    @property
    def conversation(self) -> Conversation:
        """The conversation with the job's process."""
        return Conversation(self.opened.sandbox, self.lease.check_stop)
