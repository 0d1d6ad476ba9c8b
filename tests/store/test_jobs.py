"""Jobs as their owners see them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy.orm import Session

from store.errors import IllegalTransitionError
from store.repositories import jobs, leases, steering, teams
from store.repositories.events import events_after
from store.repositories.files import list_artifacts
from store.repositories.jobs import Created
from store.repositories.trials import trials_after
from store.session import Sessions, session_scope
from store.states import JobState
from store.tables.jobs import Job
from tests.store.makers import Makers, claim, nothing_to_claim, reload


@pytest.fixture
def job(sessions: Sessions, make: Makers) -> Job:
    """A queued job."""
    with session_scope(sessions) as session:
        return jobs.create_job(session, make.job()).job


def test_new_job_is_queued_with_event(sessions: Sessions, job: Job) -> None:
    with session_scope(sessions) as session:
        assert [event.type for event in events_after(session, job.id, limit=10).items] == ["job.created"]
    assert job.state is JobState.QUEUED


def test_nothing_remains_of_a_job_that_was_rolled_back(sessions: Sessions, make: Makers) -> None:
    def create_and_break() -> None:
        with session_scope(sessions) as session:
            jobs.create_job(session, make.job())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        create_and_break()
    with session_scope(sessions) as session:
        assert jobs.list_jobs(session, make.team_id, limit=10).items == []


def test_a_job_is_found_by_its_team_alone(sessions: Sessions, job: Job) -> None:
    with session_scope(sessions) as session:
        other = teams.create_team(session, "others")
        assert jobs.find_job(session, job.id, job.team_id) is not None
        assert jobs.find_job(session, job.id, other.id) is None
        assert jobs.find_job(session, "job_unknown", job.team_id) is None


def test_one_idempotency_key_makes_one_job_however_many_ask_at_once(sessions: Sessions, make: Makers) -> None:
    together = Barrier(8)

    def create(number: int) -> Created:
        together.wait()
        with session_scope(sessions) as session:
            return jobs.create_job(session, make.job(name=str(number), idempotency_key="once"))

    with ThreadPoolExecutor(8) as threads:
        created = list(threads.map(create, range(8)))
    assert len({one.job.id for one in created}) == 1
    assert sorted(one.is_new for one in created) == [False] * 7 + [True]


def test_teams_and_jobs_without_a_key_do_not_share_idempotency(sessions: Sessions, make: Makers) -> None:
    with session_scope(sessions) as session:
        other = teams.create_team(session, "others")
        ours = make.job(idempotency_key="once")
        theirs = make.job(idempotency_key="once", team_id=other.id)
        created = [jobs.create_job(session, new) for new in (ours, theirs, make.job(), make.job())]
    assert all(one.is_new for one in created)


def test_pages_hold_every_job_once_newest_first(sessions: Sessions, make: Makers) -> None:
    with session_scope(sessions) as session:  # one transaction: the same created_at for all
        same_time = [jobs.create_job(session, make.job()).job.id for _ in range(5)]
    with session_scope(sessions) as session:
        newest = jobs.create_job(session, make.job()).job.id
        seen, after = [], None
        while True:
            page = jobs.list_jobs(session, make.team_id, limit=2, after=after)
            seen += [job.id for job in page.items]
            after = page.items[-1]
            if not page.has_more:
                break
    assert seen == [newest, *sorted(same_time, reverse=True)]


def test_lists_are_filtered_by_state_labels_and_name(sessions: Sessions, make: Makers) -> None:
    with session_scope(sessions) as session:
        plain = jobs.create_job(session, make.job()).job
        labelled = jobs.create_job(session, make.job(name="berta", labels={"run": "1", "task": "cola"})).job
        steering.request_cancel(session, plain.id)

        def ids(**filters: Any) -> list[str]:
            return [job.id for job in jobs.list_jobs(session, make.team_id, limit=10, **filters).items]

        assert ids(states=[JobState.CANCELLED]) == [plain.id]
        assert ids(labels={"task": "cola"}) == [labelled.id]
        assert ids(labels={"task": "cola", "run": "2"}) == []
        assert ids(text="BERT") == [labelled.id]
        assert set(ids(states=list(JobState))) == {plain.id, labelled.id}


def test_a_queued_job_is_cancelled_at_once(sessions: Sessions, job: Job) -> None:
    for _ in range(2):
        with session_scope(sessions) as session:
            assert steering.request_cancel(session, job.id).state is JobState.CANCELLED
    assert nothing_to_claim(sessions)


def test_an_active_job_is_cancelling_until_its_worker_says_it_stopped(sessions: Sessions, job: Job) -> None:
    held = claim(sessions)
    with session_scope(sessions) as session:
        steering.request_cancel(session, job.id)
    with session_scope(sessions) as session:
        again = steering.request_cancel(session, job.id)
        assert again.state is JobState.CANCELLING
        assert again.cancel_requested_at is not None
        assert leases.finish_cancelled(session, job.id, held.fence).state is JobState.CANCELLED


def test_a_retried_job_starts_afresh_and_keeps_its_events(sessions: Sessions, make: Makers, job: Job) -> None:
    held = claim(sessions)
    with session_scope(sessions) as session:
        leases.add_trials(session, job.id, held.fence, [make.trial(0)], {"done": 1})
        leases.finish_failed(session, job.id, held.fence, {"code": "x", "message": "y", "retryable": True})
    with session_scope(sessions) as session:
        retried = steering.retry_job(session, job.id)
        assert (retried.state, retried.attempt, retried.error, retried.progress) == (JobState.QUEUED, 0, None, None)
        assert trials_after(session, job.id, limit=10).items == []
        assert list_artifacts(session, job.id) == []
        assert [event.type for event in events_after(session, job.id, limit=10).items] == [
            "job.created",
            "job.fetching",
            "job.failed",
            "job.queued",
        ]


@pytest.mark.parametrize("act", [steering.retry_job, steering.delete_job])
def test_a_job_that_has_not_ended_is_neither_retried_nor_deleted(
    sessions: Sessions, job: Job, act: Callable[[Session, str], object]
) -> None:
    def attempt() -> None:
        with session_scope(sessions) as session:
            act(session, job.id)

    with pytest.raises(IllegalTransitionError):
        attempt()
    assert reload(sessions, job).state is JobState.QUEUED


def test_nothing_is_left_of_a_deleted_job(sessions: Sessions, make: Makers, job: Job) -> None:
    held = claim(sessions)
    with session_scope(sessions) as session:
        leases.add_trials(session, job.id, held.fence, [make.trial(0)])
        leases.finish_failed(session, job.id, held.fence, {"code": "x", "message": "y", "retryable": True})
    with session_scope(sessions) as session:
        steering.delete_job(session, job.id)
    with session_scope(sessions) as session:
        assert jobs.find_job(session, job.id, job.team_id) is None
        assert trials_after(session, job.id, limit=10).items == []
        assert events_after(session, job.id, limit=10).items == []
