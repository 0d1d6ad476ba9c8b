"""A claimed job with an open process, and everything needed to carry it out."""

from dataclasses import dataclass

from axformer.wire.steps import OnStep
from store.tables.jobs import Job
from worker.context import WorkerContext
from worker.conversation import Conversation
from worker.lease import Lease
from worker.ledger import Ledger
from worker.open_job import OpenJob
from worker.step_writer import StepWriter


@dataclass(frozen=True)
class Work:
    """The argument of the kinds of jobs in ``worker.kinds``."""

    context: WorkerContext
    job: Job
    opened: OpenJob
    ledger: Ledger
    lease: Lease

    tell: StepWriter
    """Writes what the process does at the moment."""

    @property
    def conversation(self) -> Conversation:
        """The conversation with the job's process, whose steps are written to the database."""
        return self.conversation_telling(self.tell)

    def conversation_telling(self, on_step: OnStep) -> Conversation:
        """The conversation with the job's process, whose steps go to a callback."""
        return Conversation(self.opened.sandbox, self.lease.check_stop, on_step)
