"""Carry out one claimed job: open its process, or take up the waiting one, and run it as its kind says."""

from contextlib import ExitStack

from store.states import JobState
from store.tables.jobs import Job
from worker.base.context import WorkerContext
from worker.job.failure import with_original_uris
from worker.job.kinds.registry import KINDS
from worker.job.lease import Lease
from worker.job.ledger import Ledger
from worker.job.opening import open_job
from worker.job.step_writer import StepWriter
from worker.job.time_slice import SliceOverError, TimeSlice
from worker.job.warm import WarmSlot
from worker.job.work import Work


def carry_out(context: WorkerContext, job: Job, ledger: Ledger, lease: Lease, warm: WarmSlot) -> None:
    """Run a claimed job to its end or to the end of its time slice.

    Raises:
        SliceOverError: the job is queued again; its process is kept if there is room.
        Exception: any other end of the run; its process and its files are removed.
    """
    time_slice = TimeSlice(ledger, context.settings)
    with ExitStack() as resources:
        waiting = warm.take(job)
        opened = open_job(context, job, ledger, lease, warm, time_slice) if waiting is None else waiting
        resources.callback(opened.close)
        work = Work(context, job, opened, ledger, lease, StepWriter(ledger), time_slice)
        if waiting is not None:
            ledger.enter(JobState.VALIDATING)
            ledger.enter(JobState.RUNNING, "its model was still in memory")
            work.conversation().go_on()
        try:
            with with_original_uris(opened.inputs):
                KINDS[job.kind](work)
        except SliceOverError as over:
            resources.pop_all()
            warm.keep(job.id, over.fence, opened)
            raise
