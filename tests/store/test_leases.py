"""Jobs as workers see them: one owner at a time, and nothing from those who lost theirs."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Barrier

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, update

from store.errors import CancelRequestedError, IllegalTransitionError, LeaseLostError
from store.repositories import claims, jobs, leases, moves, steering
from store.repositories.claims import yield_to_others
from store.repositories.events import events_after
from store.repositories.files import find_artifact, list_artifacts
from store.repositories.trials import all_trials
from store.session import Sessions, session_scope
from store.states import JobState
from store.tables.files import Artifact
from store.tables.jobs import Job
from tests.store.makers import JobStep, Makers, claim, nothing_to_claim, reload

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
ERROR = {"code": "invalid_data", "message": "the file is empty", "retryable": False}


@pytest.fixture
def held(sessions: Sessions, make: Makers) -> Job:
    """A job that a worker has just claimed."""
    with session_scope(sessions) as session:
        jobs.create_job(session, make.job())
    return claim(sessions)


def lose_worker(sessions: Sessions, job: Job) -> None:
    with session_scope(sessions) as session:
        session.execute(update(Job).where(Job.id == job.id).values(lease_until=LONG_AGO))


def test_each_job_goes_to_one_worker_however_many_ask_at_once(sessions: Sessions, make: Makers) -> None:
    with session_scope(sessions) as session:
        made = {jobs.create_job(session, make.job()).job.id for _ in range(24)}
    together = Barrier(8)

    def work(number: int) -> list[str]:
        together.wait()
        mine: list[str] = []
        while True:
            with session_scope(sessions) as session:
                job = claims.claim_next(session, str(number), 60)
            if job is None:
                return mine
            mine.append(job.id)

    with ThreadPoolExecutor(8) as threads:
        claimed = [job for mine in threads.map(work, range(8)) for job in mine]
    assert len(claimed) == len(made)
    assert set(claimed) == made


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(priorities=st.lists(st.integers(-2, 2), max_size=8))
def test_the_highest_priority_goes_first_then_the_oldest(
    sessions: Sessions, make: Makers, priorities: list[int]
) -> None:
    with session_scope(sessions) as session:
        session.execute(delete(Job))
    for priority in priorities:
        with session_scope(sessions) as session:
            jobs.create_job(session, make.job(priority=priority))
    claimed = [claim(sessions) for _ in priorities]
    assert claimed == sorted(claimed, key=lambda job: (-job.priority, job.created_at))


def test_a_claim_begins_an_attempt_with_a_lease_and_a_fence(held: Job) -> None:
    assert (held.state, held.attempt, held.fence, held.worker) == (JobState.FETCHING, 1, 1, "worker")
    assert held.lease_until is not None
    assert held.started_at is not None
    assert 50 < (held.lease_until - held.started_at).total_seconds() <= 60


def test_a_job_whose_lease_ran_out_is_resumed_by_another_worker(sessions: Sessions, make: Makers, held: Job) -> None:
    with session_scope(sessions) as session:
        leases.add_trials(session, held.id, held.fence, [make.trial(0)])
    assert nothing_to_claim(sessions)
    lose_worker(sessions, held)
    taken = claim(sessions, "other")
    assert (taken.id, taken.attempt, taken.worker) == (held.id, 2, "other")
    assert taken.fence > held.fence
    with session_scope(sessions) as session:
        assert list(all_trials(session, held.id, chunk=10)) == [make.trial(0)]


ZOMBIE_WRITES = {
    "heartbeat": lambda session, job: leases.heartbeat(session, job.id, job.fence, 60),
    "set_state": lambda session, job: leases.set_state(session, job.id, job.fence, JobState.VALIDATING),
    "add_trials": lambda session, job: leases.add_trials(session, job.id, job.fence, [], {"done": 9}),
    "add_event": lambda session, job: leases.add_event(session, job.id, job.fence, "job.note"),
    "succeed": lambda session, job: leases.finish_succeeded(session, job.id, job.fence, {}, []),
    "fail": lambda session, job: leases.finish_failed(session, job.id, job.fence, ERROR),
    "cancel": lambda session, job: leases.finish_cancelled(session, job.id, job.fence),
    "release": lambda session, job: leases.release(session, job.id, job.fence, "stop"),
    "yield": lambda session, job: yield_to_others(session, job.id, job.fence, "slice"),
    "abandon": lambda session, job: leases.abandon(session, job.id, job.fence, "dead"),
}


@pytest.mark.parametrize("write", ZOMBIE_WRITES.values(), ids=ZOMBIE_WRITES)
@pytest.mark.parametrize("ended", [False, True], ids=["taken over", "ended"])
def test_a_worker_that_lost_its_job_can_write_nothing(
    sessions: Sessions, held: Job, write: JobStep, ended: bool
) -> None:
    if ended:
        with session_scope(sessions) as session:
            leases.finish_failed(session, held.id, held.fence, ERROR)
    else:
        lose_worker(sessions, held)
        claim(sessions, "other")
    before = reload(sessions, held)

    def attempt() -> None:
        with session_scope(sessions) as session:
            write(session, held)

    with pytest.raises(LeaseLostError):
        attempt()
    after = reload(sessions, held)
    unchanged = ("state", "progress", "event_count", "fence", "worker", "lease_until")
    assert [getattr(after, name) for name in unchanged] == [getattr(before, name) for name in unchanged]


def test_a_heartbeat_renews_the_lease_and_tells_of_a_cancel(sessions: Sessions, held: Job) -> None:
    with session_scope(sessions) as session:
        assert leases.heartbeat(session, held.id, held.fence, 600) is JobState.FETCHING
        steering.request_cancel(session, held.id)
        assert leases.heartbeat(session, held.id, held.fence, 600) is JobState.CANCELLING
    renewed = reload(sessions, held)
    assert renewed.lease_until is not None
    assert held.lease_until is not None
    assert (renewed.lease_until - held.lease_until).total_seconds() > 500


def test_a_job_out_of_attempts_fails_and_the_next_one_is_claimed(sessions: Sessions, make: Makers) -> None:
    with session_scope(sessions) as session:
        poison = jobs.create_job(session, make.job(max_attempts=2)).job
    for _ in range(2):
        assert claim(sessions).id == poison.id
        lose_worker(sessions, poison)
    with session_scope(sessions) as session:
        harmless = jobs.create_job(session, make.job()).job
    assert claim(sessions).id == harmless.id
    ended = reload(sessions, poison)
    assert ended.state is JobState.FAILED
    assert ended.error is not None
    assert ended.error["code"] == moves.WORKER_LOST


def test_the_third_worker_that_is_lost_is_the_last(sessions: Sessions, held: Job) -> None:
    for attempt in (1, 2, 3):
        assert reload(sessions, held).attempt == attempt
        lose_worker(sessions, held)
        if attempt < 3:
            assert claim(sessions, f"worker {attempt + 1}").id == held.id
    assert nothing_to_claim(sessions)
    ended = reload(sessions, held)
    assert (ended.state, ended.attempt) == (JobState.FAILED, 3)
    assert ended.error is not None
    assert (ended.error["code"], ended.error["retryable"]) == (moves.WORKER_LOST, True)
    assert "worker 3" in ended.error["message"]


def test_a_job_whose_process_is_known_to_be_dead_is_claimed_before_its_lease_ends(
    sessions: Sessions, held: Job
) -> None:
    with session_scope(sessions) as session:
        leases.abandon(session, held.id, held.fence, "its process has died")
    taken = claim(sessions, "other")
    assert (taken.id, taken.attempt) == (held.id, 2)


def test_a_cancelled_job_whose_process_is_known_to_be_dead_ends(sessions: Sessions, held: Job) -> None:
    with session_scope(sessions) as session:
        steering.request_cancel(session, held.id)
        assert leases.abandon(session, held.id, held.fence, "dead").state is JobState.CANCELLED


def test_a_job_whose_worker_is_lost_while_it_is_cancelled_ends_as_cancelled(sessions: Sessions, held: Job) -> None:
    with session_scope(sessions) as session:
        steering.request_cancel(session, held.id)
    lose_worker(sessions, held)
    assert nothing_to_claim(sessions)
    assert reload(sessions, held).state is JobState.CANCELLED


@pytest.mark.parametrize("go_on", [ZOMBIE_WRITES["set_state"], ZOMBIE_WRITES["succeed"]], ids=["set_state", "succeed"])
def test_a_job_that_is_being_cancelled_goes_no_further(sessions: Sessions, held: Job, go_on: JobStep) -> None:
    with session_scope(sessions) as session:
        steering.request_cancel(session, held.id)

    def attempt() -> None:
        with session_scope(sessions) as session:
            go_on(session, held)

    with pytest.raises(CancelRequestedError):
        attempt()
    assert reload(sessions, held).state is JobState.CANCELLING


def test_no_state_is_skipped(sessions: Sessions, held: Job) -> None:
    with (
        session_scope(sessions) as session,
        pytest.raises(IllegalTransitionError, match="fetching cannot become packag"),
    ):
        leases.set_state(session, held.id, held.fence, JobState.PACKAGING)


def test_a_job_given_back_is_queued_and_the_attempt_does_not_count(sessions: Sessions, held: Job) -> None:
    with session_scope(sessions) as session:
        given_back = leases.release(session, held.id, held.fence, "the worker is told to stop")
    assert (given_back.state, given_back.attempt) == (JobState.QUEUED, 0)
    assert claim(sessions, "other").id == held.id


def test_a_cancelled_job_that_is_given_back_ends(sessions: Sessions, held: Job) -> None:
    with session_scope(sessions) as session:
        steering.request_cancel(session, held.id)
        assert leases.release(session, held.id, held.fence, "stop").state is JobState.CANCELLED


def test_a_finished_job_has_its_report_and_files(sessions: Sessions, held: Job) -> None:
    with session_scope(sessions) as session:
        for state in (JobState.VALIDATING, JobState.RUNNING, JobState.PACKAGING):
            leases.set_state(session, held.id, held.fence, state)
        file = Artifact(job_id=held.id, name="plan.json", sha256="0" * 64, bytes=2, media_type="application/json")
        done = leases.finish_succeeded(session, held.id, held.fence, {"removed": []}, [file])
        assert (done.state, done.report, done.worker) == (JobState.SUCCEEDED, {"removed": []}, None)
    with session_scope(sessions) as session:
        assert [artifact.name for artifact in list_artifacts(session, held.id)] == ["plan.json"]
        plan = find_artifact(session, held.id, "plan.json")
        assert plan is not None
        assert plan.bytes == 2
        assert find_artifact(session, held.id, "other.json") is None


def test_an_error_may_quote_bytes_that_are_not_text(sessions: Sessions, held: Job) -> None:
    hostile = "label 'a\0b\udcff' is unknown"
    with session_scope(sessions) as session:
        leases.finish_failed(session, held.id, held.fence, ERROR | {"message": hostile})
    ended = reload(sessions, held)
    assert ended.error == ERROR | {"message": "label 'a\ufffdb?' is unknown"}
    assert ended.status_reason == "label 'a\ufffdb?' is unknown"


def test_events_are_numbered_without_gaps_however_many_write_at_once(sessions: Sessions, held: Job) -> None:
    together = Barrier(8)

    def write(number: int) -> None:
        together.wait()
        for turn in range(10):
            with sessions() as session:
                leases.add_event(session, held.id, held.fence, "job.note", {"by": number})
                session.rollback() if turn % 3 == 0 else session.commit()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(8)))
    with session_scope(sessions) as session:
        numbers = [event.seq for event in events_after(session, held.id, limit=1000).items]
    assert numbers == list(range(1, 2 + 1 + 8 * 6))
