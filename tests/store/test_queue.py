"""The queue seen as a whole."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete

from store.repositories import jobs, leases, queue
from store.session import Sessions, session_scope
from store.states import JobState
from store.tables.jobs import Job
from tests.store.makers import Makers, claim


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(priorities=st.lists(st.integers(-1, 1), min_size=1, max_size=6))
def test_positions_are_the_order_of_claims(sessions: Sessions, make: Makers, priorities: list[int]) -> None:
    with session_scope(sessions) as session:
        session.execute(delete(Job))
        for priority in priorities:
            jobs.create_job(session, make.job(priority=priority))
    with session_scope(sessions) as session:
        places = [(one.place, one.job_id) for one in queue.waiting_jobs(session)]
    assert places == [(place, claim(sessions).id) for place in range(1, len(priorities) + 1)]


def test_counts_and_times(sessions: Sessions, make: Makers) -> None:
    with session_scope(sessions) as session:
        assert queue.state_counts(session) == dict.fromkeys(JobState, 0)
        for _ in range(3):
            jobs.create_job(session, make.job())
    done = claim(sessions)
    with session_scope(sessions) as session:
        for state in (JobState.VALIDATING, JobState.RUNNING, JobState.PACKAGING):
            leases.set_state(session, done.id, done.fence, state)
        leases.finish_succeeded(session, done.id, done.fence, {}, [])
    active = claim(sessions)
    with session_scope(sessions) as session:
        counts = queue.state_counts(session, make.team_id)
        assert (counts[JobState.QUEUED], counts[JobState.FETCHING], counts[JobState.SUCCEEDED]) == (1, 1, 1)
        assert sum(queue.state_counts(session, "team_other").values()) == 0
        assert [job.id for job in queue.active_jobs(session)] == [active.id]
        seconds = queue.recent_pass_seconds(session, 5)
    assert list(seconds) == ["axformer"]
    assert len(seconds["axformer"]) == 1
    assert 0 < seconds["axformer"][0] < 60
