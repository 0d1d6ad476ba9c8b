"""The states of a job and the moves between them, as one table. A job whose lease ran out may start again."""

from axformer.wire.states import TERMINAL as TERMINAL
from axformer.wire.states import JobState as JobState
from store.errors import IllegalTransitionError

WORKING = frozenset({JobState.FETCHING, JobState.VALIDATING, JobState.RUNNING, JobState.PACKAGING})
"""States in which a worker makes progress with the job."""
ACTIVE = WORKING | {JobState.PAUSING, JobState.CANCELLING}
"""States in which a worker holds the job's lease."""

_LEAVE = {JobState.FETCHING, JobState.QUEUED, JobState.CANCELLING, JobState.FAILED, JobState.CANCELLED}
"""States that follow any working state: started again by another worker, given back, cancelled, failed."""

TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    JobState.QUEUED: frozenset({JobState.FETCHING, JobState.PAUSED, JobState.CANCELLED}),
    JobState.FETCHING: frozenset({JobState.VALIDATING, JobState.PAUSING} | _LEAVE),
    JobState.VALIDATING: frozenset({JobState.RUNNING, JobState.PAUSING} | _LEAVE),
    JobState.RUNNING: frozenset({JobState.PACKAGING, JobState.PAUSING} | _LEAVE),
    # The job is about to end, so it cannot be paused.
    JobState.PACKAGING: frozenset({JobState.SUCCEEDED} | _LEAVE),
    JobState.PAUSING: frozenset({JobState.PAUSED, JobState.CANCELLING, JobState.CANCELLED, JobState.FAILED}),
    JobState.PAUSED: frozenset({JobState.QUEUED, JobState.CANCELLED}),
    JobState.CANCELLING: frozenset({JobState.CANCELLED, JobState.FAILED}),
    JobState.SUCCEEDED: frozenset(),
    JobState.FAILED: frozenset({JobState.QUEUED}),
    JobState.CANCELLED: frozenset({JobState.QUEUED}),
}


def check_transition(old: JobState, new: JobState) -> None:
    """Check that a job may move from one state to another.

    Raises:
        IllegalTransitionError: it may not.
    """
    if new not in TRANSITIONS[old]:
        legal = ", ".join(sorted(TRANSITIONS[old])) or "nothing else"
        raise IllegalTransitionError(f"a job that is {old} cannot become {new}; it can become {legal}")
