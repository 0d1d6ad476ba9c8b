"""A run: store trials as they arrive, and publish the result."""

from store.errors import PauseRequestedError
from worker.job.lease import StopRequestedError
from worker.job.publication import publish
from worker.job.recorder import Recorder, recorder_of
from worker.job.work import Work
from worker.sandbox.messages import Searched, Tried


def carry_out(work: Work) -> None:
    """Record trials until the search ends, then publish the result.

    Raises:
        SliceOverError: the time slice is over, and the job is queued again.
    """
    if work.opened.searched is None:
        work.opened.searched = _search(work, recorder_of(work))
    publish(work, work.opened.searched)


def _search(work: Work, recorder: Recorder) -> Searched:
    conversation = work.conversation(recorder.flush)
    try:
        while isinstance(step := conversation.next(), Tried):
            _take(work, recorder, step)
    except (StopRequestedError, PauseRequestedError):
        for tried in conversation.arrived_trials():
            _take(work, recorder, tried)
        recorder.flush()
        raise
    work.opened.speed = step.speed
    recorder.end()
    return step


def _take(work: Work, recorder: Recorder, tried: Tried) -> None:
    work.opened.take(tried)
    recorder.add(tried.trial)
