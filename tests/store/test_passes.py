"""A search of orders is a parent and six passes: workers take the passes, and the parent ends after them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, update
from sqlalchemy.orm import Session

from axformer.methods.axformer.orders import SEARCHED_ORDERS
from store.errors import CancelRequestedError, IllegalTransitionError
from store.repositories import claims, jobs, leases, queue, steering
from store.repositories.events import events_after
from store.repositories.passes import passes_of
from store.session import Sessions, session_scope
from store.states import TERMINAL, WORKING, JobState
from store.tables.jobs import Job
from tests.store.makers import Makers, claim, nothing_to_claim, reload

ERROR = {"code": "invalid_data", "message": "no rows", "param": "validation", "retryable": False}
STEPS_TO_SUCCESS = (JobState.VALIDATING, JobState.RUNNING, JobState.PACKAGING)
Act = Callable[[Session, Job], object]


@pytest.fixture
def parent(sessions: Sessions, make: Makers) -> Job:
    """A search that was just posted."""
    with session_scope(sessions) as session:
        return jobs.create_job(session, make.job(config={"order": "search", "seed": 3}, labels={"a": "b"})).job


def passes(sessions: Sessions, parent: Job) -> list[Job]:
    with session_scope(sessions) as session:
        return passes_of(session, [parent.id]).get(parent.id, [])


def succeed(session: Session, job: Job) -> None:
    for state in STEPS_TO_SUCCESS:
        leases.set_state(session, job.id, job.fence, state)
    leases.finish_succeeded(session, job.id, job.fence, {}, [])


def fail(session: Session, job: Job) -> None:
    leases.finish_failed(session, job.id, job.fence, ERROR)


def do(sessions: Sessions, act: Act, job: Job) -> None:
    with session_scope(sessions) as session:
        act(session, job)


def cancel(sessions: Sessions, job: Job) -> None:
    with session_scope(sessions) as session:
        steering.request_cancel(session, job.id)


def states(sessions: Sessions, parent: Job) -> list[JobState]:
    return [one.state for one in passes(sessions, parent)]


def test_a_search_makes_a_queued_job_for_each_order(sessions: Sessions, parent: Job) -> None:
    made = passes(sessions, parent)
    assert [one.config for one in made] == [{"order": order, "seed": 3} for order in SEARCHED_ORDERS]
    assert [one.name for one in made] == [f"job: {order}" for order in SEARCHED_ORDERS]
    for one in made:
        shared = ("team_id", "checkpoint", "validation", "test", "priority", "labels", "max_attempts", "created_at")
        assert all(getattr(one, name) == getattr(parent, name) for name in shared)
        assert (one.state, one.idempotency_key) == (JobState.QUEUED, None)
    with session_scope(sessions) as session:
        assert [job.id for job in jobs.list_jobs(session, parent.team_id, limit=9).items] == [parent.id]
        assert queue.state_counts(session, parent.team_id)[JobState.QUEUED] == 1
        assert queue.queue_length(session) == 6


def test_the_same_request_makes_the_passes_once(sessions: Sessions, make: Makers) -> None:
    new = make.job(config={"order": "search"}, idempotency_key="once")
    for _ in range(2):
        with session_scope(sessions) as session:
            parent = jobs.create_job(session, new).job
    assert len(passes(sessions, parent)) == 6


def test_workers_take_all_passes_at_once_and_the_parent_runs_without_one(sessions: Sessions, parent: Job) -> None:
    together = Barrier(8)

    def take(number: int) -> str | None:
        together.wait()
        with session_scope(sessions) as session:
            job = claims.claim_next(session, str(number), 60)
            return job.id if job else None

    with ThreadPoolExecutor(8) as threads:
        claimed = set(threads.map(take, range(8))) - {None}
    assert claimed == {one.id for one in passes(sessions, parent)}
    now = reload(sessions, parent)
    assert (now.state, now.worker, now.attempt) == (JobState.RUNNING, None, 0)
    assert now.started_at is not None
    with session_scope(sessions) as session:
        assert parent.id not in [job.id for job in queue.active_jobs(session)]


def test_the_parent_is_claimed_when_all_passes_have_succeeded(sessions: Sessions, parent: Job) -> None:
    for _ in SEARCHED_ORDERS:
        one = claim(sessions)
        assert one.parent_id == parent.id
        do(sessions, succeed, one)
    begun = reload(sessions, parent).started_at
    last = claim(sessions)
    assert (last.id, last.attempt, last.started_at) == (parent.id, 1, begun)
    do(sessions, succeed, last)
    assert reload(sessions, parent).state is JobState.SUCCEEDED
    with session_scope(sessions) as session:
        told = [event.type for event in events_after(session, parent.id, limit=20).items]
        assert len(queue.recent_run_seconds(session, 20)) == 6
    steps = ["created", "running", "fetching", "validating", "running", "packaging", "succeeded"]
    assert told == [f"job.{step}" for step in steps]


def test_a_parent_goes_before_other_jobs_of_its_age(sessions: Sessions, make: Makers) -> None:
    with session_scope(sessions) as session:
        parents = {jobs.create_job(session, make.job(config={"order": "search"})).job.id for _ in range(2)}
    claimed = []
    for _ in range(14):
        with session_scope(sessions) as session:
            line = queue.waiting_jobs(session)
        one = claim(sessions)
        assert (line[0].place, line[0].job_id) == (1, one.id)
        claimed.append(one.id)
        do(sessions, succeed, one)
    assert [place for place, id in enumerate(claimed) if id in parents] == [6, 13]


def test_a_failed_pass_fails_the_parent_when_the_others_have_stopped(sessions: Sessions, parent: Job) -> None:
    first, second, third = (claim(sessions) for _ in range(3))
    do(sessions, succeed, third)
    do(sessions, fail, first)
    assert nothing_to_claim(sessions), "the others are cancelled, not begun"
    assert reload(sessions, parent).state is JobState.RUNNING
    assert reload(sessions, second).state is JobState.CANCELLING
    others = [one.state for one in passes(sessions, parent) if one.id not in (first.id, second.id, third.id)]
    assert others == [JobState.CANCELLED] * 3
    assert nothing_to_claim(sessions), "a pass still runs"
    with session_scope(sessions) as session:
        leases.finish_cancelled(session, second.id, second.fence)
    assert nothing_to_claim(sessions)
    now = reload(sessions, parent)
    assert now.state is JobState.FAILED
    assert now.error == ERROR | {"message": f"its pass {first.id} ({first.config['order']}) failed: no rows"}


def test_the_passes_of_a_cancelled_search_are_cancelled(sessions: Sessions, parent: Job) -> None:
    cancel(sessions, parent)
    assert states(sessions, parent) == [JobState.CANCELLED] * 6
    assert reload(sessions, parent).state is JobState.CANCELLED
    assert nothing_to_claim(sessions)


def test_a_search_is_cancelling_until_its_passes_have_stopped(sessions: Sessions, parent: Job) -> None:
    first, second = claim(sessions), claim(sessions)
    do(sessions, succeed, first)
    for _ in range(2):
        cancel(sessions, parent)
    assert reload(sessions, parent).state is JobState.CANCELLING
    assert sorted(states(sessions, parent)) == [JobState.CANCELLED] * 4 + [JobState.CANCELLING, JobState.SUCCEEDED]
    assert nothing_to_claim(sessions)
    assert reload(sessions, parent).state is JobState.CANCELLING
    with session_scope(sessions) as session:
        leases.finish_cancelled(session, second.id, second.fence)
    assert nothing_to_claim(sessions)
    now = reload(sessions, parent)
    assert (now.state, now.status_reason) == (JobState.CANCELLED, None)


def test_a_parent_whose_worker_is_lost_is_taken_again(sessions: Sessions, parent: Job) -> None:
    for _ in SEARCHED_ORDERS:
        do(sessions, succeed, claim(sessions))
    held = claim(sessions)
    assert nothing_to_claim(sessions)
    with session_scope(sessions) as session:
        leases.release(session, held.id, held.fence, "the worker is told to stop")
    again = claim(sessions)
    assert (again.id, again.attempt) == (parent.id, 1)


def test_a_retried_search_has_new_passes(sessions: Sessions, parent: Job) -> None:
    one = claim(sessions)
    do(sessions, fail, one)
    before = {old.id for old in passes(sessions, parent)}
    assert nothing_to_claim(sessions)
    with session_scope(sessions) as session:
        again = steering.retry_job(session, parent.id)
        assert (again.state, again.started_at, again.error) == (JobState.QUEUED, None, None)
    made = passes(sessions, parent)
    assert len(made) == 6
    assert not before & {new.id for new in made}
    assert claim(sessions).id in {new.id for new in made}


@pytest.mark.parametrize("act", [steering.retry_job, steering.delete_job])
def test_a_search_is_neither_retried_nor_deleted_while_a_pass_runs(
    sessions: Sessions, parent: Job, act: Callable[[Session, str], object]
) -> None:
    claim(sessions)
    with session_scope(sessions) as session:
        session.execute(update(Job).where(Job.id == parent.id).values(state=JobState.FAILED))

    def attempt() -> None:
        with session_scope(sessions) as session:
            act(session, parent.id)

    with pytest.raises(IllegalTransitionError, match="is still fetching"):
        attempt()
    assert len(passes(sessions, parent)) == 6


def test_nothing_is_left_of_a_deleted_search(sessions: Sessions, parent: Job) -> None:
    cancel(sessions, parent)
    with session_scope(sessions) as session:
        steering.delete_job(session, parent.id)
    with session_scope(sessions) as session:
        assert session.query(Job).count() == 0


def test_cancels_claims_and_ends_at_the_same_time_do_not_lock_each_other_out(sessions: Sessions, parent: Job) -> None:
    """Workers claim, run and fail passes while their owner cancels; a deadlock would raise in one of the threads."""
    over = Event()

    def work(number: int) -> int:
        done = 0
        while not over.is_set():
            with session_scope(sessions) as session:
                job = claims.claim_next(session, str(number), 60)
            if job is None:
                continue
            done += 1
            end = fail if done % 3 == 0 else succeed
            try:
                do(sessions, end, job)
            except CancelRequestedError:
                with session_scope(sessions) as session:
                    leases.finish_cancelled(session, job.id, job.fence)
        return done

    def own(_: int) -> None:
        for _ in range(12):
            with session_scope(sessions) as session:
                new = jobs.NewJob(parent.team_id, "x", {"uri": "a"}, {"uri": "b"}, "paper", {"order": "search"})
                made = jobs.create_job(session, new).job
            over.wait(0.05)
            try:
                cancel(sessions, made)
            except IllegalTransitionError:
                continue

    with ThreadPoolExecutor(6) as threads:
        workers = [threads.submit(work, number) for number in range(4)]
        try:
            for owner in [threads.submit(own, number) for number in range(2)]:
                owner.result(60)
            over.wait(1.0)
        finally:
            over.set()
        assert sum(worker.result(60) for worker in workers) > 0
    while not nothing_to_claim(sessions):
        pass
    with session_scope(sessions) as session:
        left = [job for job in session.query(Job) if job.state not in TERMINAL]
    assert left == []


STEPS = ("claim", "succeed", "fail", "stop", "give back", "cancel")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 6)), max_size=30))
def test_a_parent_ends_as_its_passes_do(sessions: Sessions, make: Makers, steps: list[tuple[str, int]]) -> None:
    with session_scope(sessions) as session:
        session.execute(delete(Job))
        parent = jobs.create_job(session, make.job(config={"order": "search"})).job
    held: list[Job] = []
    for step, place in [*steps, *[("claim", 0), ("stop", 0), ("succeed", 0)] * 12]:
        _take_step(sessions, parent, held, step, place)
        _check_family(sessions, parent)
    assert reload(sessions, parent).state in TERMINAL


def _take_step(sessions: Sessions, parent: Job, held: list[Job], step: str, place: int) -> None:
    if step == "claim":
        with session_scope(sessions) as session:
            job = claims.claim_next(session, "worker", 60)
        held += [job] if job is not None else []
    elif step == "cancel":
        try:
            cancel(sessions, parent)
        except IllegalTransitionError:
            assert reload(sessions, parent).state in (JobState.SUCCEEDED, JobState.FAILED)
    elif held:
        _end(sessions, held.pop(place % len(held)), step)


def _end(sessions: Sessions, job: Job, step: str) -> None:
    is_cancelling = reload(sessions, job).state is JobState.CANCELLING
    with session_scope(sessions) as session:
        if step == "give back":
            leases.release(session, job.id, job.fence, "the worker is told to stop")
        elif is_cancelling:
            leases.finish_cancelled(session, job.id, job.fence)
        elif step == "fail":
            fail(session, job)
        else:
            succeed(session, job)


def _check_family(sessions: Sessions, parent: Job) -> None:
    now, below = reload(sessions, parent), states(sessions, parent)
    if now.state is JobState.SUCCEEDED or now.worker is not None:
        assert below == [JobState.SUCCEEDED] * 6
    if now.state in TERMINAL:
        assert set(below) <= TERMINAL
    if now.state is JobState.FAILED and now.attempt == 0:
        assert JobState.FAILED in below
    if now.state is JobState.QUEUED and now.attempt == 0 and now.started_at is None:
        assert not set(below) & (WORKING | {JobState.SUCCEEDED})


def test_a_plain_job_has_no_passes(sessions: Sessions, make: Makers) -> None:
    changes: list[dict[str, Any]] = [{}, {"config": {"order": "random"}}]
    with session_scope(sessions) as session:
        ids = [jobs.create_job(session, make.job(**change)).job.id for change in changes]
        assert passes_of(session, ids) == {}
