"""A job that trains goes on where the state of its trainings is kept, as long as that machine lives and takes it soon."""

from collections.abc import Callable

import pytest
from sqlalchemy.orm import Session

from axformer.wire.devices import Device
from store.repositories import claims, leases, steering
from store.repositories.line import Abilities
from store.repositories.workers import note_worker
from store.session import Sessions, session_scope
from store.states import JobState
from store.tables.jobs import Job
from tests.store.crowd import LEASE, Crowd

TRAINS = {"train": {"uri": "file:///train.jsonl"}}
HERE, ELSEWHERE = "here", "elsewhere"
SOON, LATER = 45, 400


def yields(session: Session, job: Job) -> None:
    leases.release(session, job.id, job.fence, "others go first")


def dies(session: Session, job: Job) -> None:
    leases.abandon(session, job.id, job.fence, "its process has died")


def is_paused_and_resumed(session: Session, job: Job) -> None:
    steering.request_pause(session, job.id)
    yields(session, job)
    steering.resume_job(session, job.id)


def fails_and_is_retried(session: Session, job: Job) -> None:
    leases.finish_failed(session, job.id, job.fence, {"code": "x", "message": "over", "retryable": True})
    steering.retry_job(session, job.id)


@pytest.fixture
def crowd(sessions: Sessions) -> Crowd:
    crowd = Crowd(sessions)
    crowd.team("a")
    see(crowd, HERE)
    return crowd


def see(crowd: Crowd, machine: str) -> None:
    with session_scope(crowd.sessions) as session:
        note_worker(session, f"{machine}:1", f"{machine}:2", "queue", Device.CPU, machine)


def held_here(crowd: Crowd, leaves: Callable[[Session, Job], None], **fields: object) -> str:
    """A job that a worker of this machine has held."""
    job_id = crowd.post("a", **fields)
    job = crowd.claim(machine=HERE)
    assert job is not None
    assert job.id == job_id
    with session_scope(crowd.sessions) as session:
        leaves(session, job)
    return job_id


def claimed(crowd: Crowd, machine: str) -> str | None:
    """The id of the job that a worker of a machine gets, which it gives back."""
    with session_scope(crowd.sessions) as session:
        job = claims.claim_next(session, "worker", LEASE, able=Abilities(machine=machine))
        job_id = None if job is None else job.id
        session.rollback()
    return job_id


@pytest.mark.parametrize("leaves", [yields, dies, is_paused_and_resumed])
def test_it_is_left_to_its_machine_for_a_while(crowd: Crowd, leaves: Callable[[Session, Job], None]) -> None:
    job_id = held_here(crowd, leaves, **TRAINS)
    assert claimed(crowd, ELSEWHERE) is None
    with session_scope(crowd.sessions) as session:
        assert not claims.is_anything_claimable(session, Abilities(machine=ELSEWHERE))
    assert claimed(crowd, HERE) == job_id
    crowd.wait(LATER)
    see(crowd, HERE)
    assert claimed(crowd, ELSEWHERE) == job_id


def test_its_place_in_the_line_stays(crowd: Crowd) -> None:
    first, second = held_here(crowd, yields, **TRAINS), crowd.post("a")
    assert claimed(crowd, HERE) == first
    assert claimed(crowd, ELSEWHERE) == second


def test_a_machine_that_is_gone_is_not_waited_for(crowd: Crowd) -> None:
    job_id = held_here(crowd, yields, **TRAINS)
    crowd.wait(SOON)
    assert claimed(crowd, ELSEWHERE) is None
    crowd.wait(SOON)
    assert claimed(crowd, ELSEWHERE) == job_id


def test_another_machine_has_the_state_once_it_had_the_job(crowd: Crowd) -> None:
    job_id = held_here(crowd, yields, **TRAINS)
    crowd.wait(LATER)
    see(crowd, HERE)
    see(crowd, ELSEWHERE)
    job = crowd.claim(machine=ELSEWHERE)
    assert job is not None
    with session_scope(crowd.sessions) as session:
        yields(session, job)
    assert claimed(crowd, HERE) is None
    assert claimed(crowd, ELSEWHERE) == job_id


def test_what_has_no_such_state_goes_to_any_machine(crowd: Crowd) -> None:
    assert claimed(crowd, ELSEWHERE) is None
    passing = held_here(crowd, yields)
    assert claimed(crowd, ELSEWHERE) == passing


def test_a_retried_job_begins_anew_anywhere(crowd: Crowd) -> None:
    job_id = held_here(crowd, fails_and_is_retried, **TRAINS)
    assert claimed(crowd, ELSEWHERE) == job_id


def test_workers_that_do_not_say_where_they_are_take_everything(crowd: Crowd) -> None:
    job_id = held_here(crowd, yields, **TRAINS)
    job = crowd.claim()
    assert job is not None
    assert (job.id, job.state, job.machine) == (job_id, JobState.FETCHING, None)
