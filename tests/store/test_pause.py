"""A paused job stays where it is, with its trace, until it is resumed."""

import pytest
from sqlalchemy import text, update

from store.errors import IllegalTransitionError, PauseRequestedError
from store.repositories import jobs, leases, steering
from store.repositories.trials import all_trials
from store.session import Sessions, session_scope
from store.states import JobState
from store.tables.jobs import Job
from tests.store.makers import Makers, claim, nothing_to_claim, reload


def posted(sessions: Sessions, make: Makers, **changes: object) -> Job:
    with session_scope(sessions) as session:
        return jobs.create_job(session, make.job(**changes)).job


def pause(sessions: Sessions, job: Job) -> Job:
    with session_scope(sessions) as session:
        return steering.request_pause(session, job.id)


def resume(sessions: Sessions, job: Job) -> Job:
    with session_scope(sessions) as session:
        return steering.resume_job(session, job.id)


def give_back(sessions: Sessions, job: Job) -> Job:
    with session_scope(sessions) as session:
        return leases.release(session, job.id, job.fence, "asked to")


def test_a_queued_job_is_paused_at_once_and_not_claimed_until_it_is_resumed(sessions: Sessions, make: Makers) -> None:
    job = posted(sessions, make)
    assert pause(sessions, job).state is JobState.PAUSED
    assert pause(sessions, job).event_count == reload(sessions, job).event_count == 2
    assert nothing_to_claim(sessions)
    assert resume(sessions, job).state is JobState.QUEUED
    assert claim(sessions).id == job.id


def test_a_running_job_is_paused_by_its_worker_keeps_its_trace_and_the_attempt_does_not_count(
    sessions: Sessions, make: Makers
) -> None:
    posted(sessions, make)
    held = claim(sessions)
    with session_scope(sessions) as session:
        leases.add_trials(session, held.id, held.fence, [make.trial(0), make.trial(1)])
    assert pause(sessions, held).state is JobState.PAUSING
    with session_scope(sessions) as session:
        assert leases.heartbeat(session, held.id, held.fence, 60) is JobState.PAUSING
        with pytest.raises(PauseRequestedError):
            leases.set_state(session, held.id, held.fence, JobState.VALIDATING)
    with session_scope(sessions) as session, pytest.raises(IllegalTransitionError, match="only a paused one"):
        steering.resume_job(session, held.id)
    paused = give_back(sessions, held)
    assert (paused.state, paused.worker, paused.attempt) == (JobState.PAUSED, None, 0)
    resume(sessions, held)
    again = claim(sessions)
    assert (again.id, again.attempt) == (held.id, 1)
    with session_scope(sessions) as session:
        assert list(all_trials(session, held.id, chunk=10)) == [make.trial(0), make.trial(1)]


def test_a_job_whose_worker_is_lost_while_it_is_being_paused_is_paused(sessions: Sessions, make: Makers) -> None:
    posted(sessions, make)
    held = claim(sessions)
    pause(sessions, held)
    with session_scope(sessions) as session:
        session.execute(update(Job).values(lease_until=text("now() - interval '1 second'")))
    assert nothing_to_claim(sessions)
    assert reload(sessions, held).state is JobState.PAUSED


def test_a_paused_job_is_cancelled_at_once_and_one_that_is_being_paused_by_its_worker(
    sessions: Sessions, make: Makers
) -> None:
    job = posted(sessions, make)
    pause(sessions, job)
    with session_scope(sessions) as session:
        assert steering.request_cancel(session, job.id).state is JobState.CANCELLED
    posted(sessions, make)
    held = claim(sessions)
    pause(sessions, held)
    with session_scope(sessions) as session:
        assert steering.request_cancel(session, held.id).state is JobState.CANCELLING
    assert give_back(sessions, held).state is JobState.CANCELLED


def test_what_is_about_to_end_or_has_ended_is_not_paused(sessions: Sessions, make: Makers) -> None:
    posted(sessions, make)
    held = claim(sessions)
    for state in (JobState.VALIDATING, JobState.RUNNING, JobState.PACKAGING):
        with session_scope(sessions) as session:
            leases.set_state(session, held.id, held.fence, state)
    with pytest.raises(IllegalTransitionError, match="packaging cannot become pausing"):
        pause(sessions, held)
    with session_scope(sessions) as session:
        leases.finish_succeeded(session, held.id, held.fence, {}, [])
    for act in (pause, resume):
        with pytest.raises(IllegalTransitionError, match="succeeded"):
            act(sessions, held)
