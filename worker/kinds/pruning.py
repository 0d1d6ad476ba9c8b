"""A pass, or several with ``order=search``: store trials as they arrive, and publish the best pass."""

from axformer.wire.steps import Step
from store.errors import PauseRequestedError
from worker.lease import StopRequestedError
from worker.publication import publish
from worker.recorder import Recorder, recorder_of
from worker.sandbox.errors import ProcessMisbehavedError
from worker.sandbox.messages import Searched, Tried
from worker.time_slice import TimeSlice
from worker.work import Work


def carry_out(work: Work) -> None:
    """Record trials until the search ends, then publish the result.

    Raises:
        SliceOverError: the time slice is over, and the job is queued again.
    """
    recorder = recorder_of(work)
    try:
        searched = _follow(work, recorder)
    except (StopRequestedError, PauseRequestedError):
        for tried in work.conversation.arrived_trials():
            _take(work, recorder, tried)
        recorder.flush()
        raise
    work.opened.speed = searched.speed
    recorder.end()
    publish(work, searched)


def _follow(work: Work, recorder: Recorder) -> Searched:
    """Record trials, and yield to other jobs at the end of the time slice."""
    time_slice = None
    conversation = work.conversation_telling(lambda step: _tell(work, recorder, step))
    while not isinstance(step := conversation.next(), Searched):
        if isinstance(step, Tried):
            _take(work, recorder, step)
            time_slice = time_slice or TimeSlice(work.ledger, work.context.settings)
            if time_slice.is_wanted():
                conversation.suspend()
        elif time_slice is None:
            raise ProcessMisbehavedError(f"{type(step).__name__} before its first trial")
        else:
            recorder.flush()
            time_slice.yield_to_others()
            conversation.go_on()
    return step


def _take(work: Work, recorder: Recorder, tried: Tried) -> None:
    work.opened.take(tried)
    recorder.add(tried.trial)


def _tell(work: Work, recorder: Recorder, step: Step) -> None:
    """Write the pending trials, so that viewers see them while the step goes on, and then the step."""
    recorder.flush()
    work.tell(step)
