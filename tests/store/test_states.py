"""The table of moves between states, and that nothing in the store leaves it."""

from datetime import UTC, datetime
from itertools import pairwise, product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, update
from sqlalchemy.orm import Session

from store.errors import CancelRequestedError, IllegalTransitionError, LeaseLostError, PauseRequestedError
from store.repositories import claims, events, jobs, leases, steering
from store.session import Sessions, session_scope
from store.states import ACTIVE, TERMINAL, TRANSITIONS, WORKING, JobState, check_transition
from store.tables.jobs import Job
from tests.store.makers import JobStep, Makers, reload

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
STATES_AHEAD = (JobState.VALIDATING, JobState.RUNNING, JobState.PACKAGING)


MOVES = """
queued      fetching paused cancelled
fetching    validating pausing fetching queued cancelling failed cancelled
validating  running pausing fetching queued cancelling failed cancelled
running     packaging pausing fetching queued cancelling failed cancelled
packaging   succeeded fetching queued cancelling failed cancelled
pausing     paused cancelling cancelled failed
paused      queued cancelled
cancelling  cancelled failed
succeeded
failed      queued
cancelled   queued
"""
"""A state, and what a job that is in it may become."""


def test_only_moves_of_the_table_are_allowed() -> None:
    lines = [line.split() for line in MOVES.strip().splitlines()]
    allowed = {(old, new) for old, *became in lines for new in became}
    assert [old for old, *_ in lines] == [*JobState]
    for old, new in product(JobState, JobState):
        if (old, new) in allowed:
            check_transition(old, new)
        else:
            with pytest.raises(IllegalTransitionError, match=f"{old} cannot become {new}"):
                check_transition(old, new)


def test_every_job_can_end_and_only_failed_and_cancelled_ones_start_again() -> None:
    assert set(TRANSITIONS) == set(JobState)
    assert set(JobState) == TERMINAL | ACTIVE | {JobState.QUEUED, JobState.PAUSED}
    assert all(TERMINAL & TRANSITIONS[state] for state in ACTIVE | {JobState.QUEUED, JobState.PAUSED})
    assert {state for state in TERMINAL if TRANSITIONS[state]} == {JobState.FAILED, JobState.CANCELLED}


def test_every_working_job_can_be_begun_again_given_back_cancelled_and_failed() -> None:
    leave = {JobState.FETCHING, JobState.QUEUED, JobState.CANCELLING, JobState.CANCELLED, JobState.FAILED}
    assert all(leave <= TRANSITIONS[state] for state in WORKING)


def claim(session: Session, job: Job) -> None:
    claims.claim_next(session, "worker", 60)


def lose_worker(session: Session, job: Job) -> None:
    session.execute(update(Job).where(Job.id == job.id, Job.state.in_(ACTIVE)).values(lease_until=LONG_AGO))


def go_on(session: Session, job: Job) -> None:
    leases.set_state(session, job.id, job.fence, next(s for s in STATES_AHEAD if s in TRANSITIONS[job.state]))


def succeed(session: Session, job: Job) -> None:
    leases.finish_succeeded(session, job.id, job.fence, {}, [])


def fail(session: Session, job: Job) -> None:
    leases.finish_failed(session, job.id, job.fence, {"code": "x", "message": "y", "retryable": False})


def end_cancelled(session: Session, job: Job) -> None:
    leases.finish_cancelled(session, job.id, job.fence)


def give_back(session: Session, job: Job) -> None:
    leases.release(session, job.id, job.fence, "the worker is told to stop")


def cancel(session: Session, job: Job) -> None:
    steering.request_cancel(session, job.id)


def pause(session: Session, job: Job) -> None:
    steering.request_pause(session, job.id)


def resume(session: Session, job: Job) -> None:
    steering.resume_job(session, job.id)


def retry(session: Session, job: Job) -> None:
    steering.retry_job(session, job.id)


STEPS = (claim, lose_worker, go_on, succeed, fail, end_cancelled, give_back, cancel, pause, resume, retry)
REFUSED = (IllegalTransitionError, LeaseLostError, CancelRequestedError, PauseRequestedError, StopIteration)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.sampled_from(STEPS), max_size=25))
def test_whatever_is_asked_of_a_job_its_history_is_legal(
    sessions: Sessions, make: Makers, steps: list[JobStep]
) -> None:
    with session_scope(sessions) as session:
        session.execute(delete(Job))
        job = jobs.create_job(session, make.job()).job
    for step in steps:
        before = job
        try:
            with session_scope(sessions) as session:
                step(session, job)
        except REFUSED:
            pass
        job = reload(sessions, job)
        assert job.fence >= before.fence
        assert (job.worker is not None) == (job.lease_until is not None) == (job.state in ACTIVE)
        assert (job.finished_at is not None) == (job.state in TERMINAL)
        assert (job.error is not None) == (job.state is JobState.FAILED)
        assert 0 <= job.attempt <= job.max_attempts
    with session_scope(sessions) as session:
        told = events.events_after(session, job.id, limit=1000).items
    states = [JobState(event.data["state"]) for event in told]
    assert [event.seq for event in told] == list(range(1, job.event_count + 1))
    assert all(new in TRANSITIONS[old] for old, new in pairwise(states))
    assert states[-1] is job.state
