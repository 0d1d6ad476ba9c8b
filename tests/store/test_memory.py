"""Workers with unlike devices: each takes what it can hold, and leaves to a smaller idle one what that can."""

from collections.abc import Callable

import pytest
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from axformer.wire.devices import Device, can_take
from store.repositories import claims, leases
from store.repositories.line import LEFT, Abilities
from store.repositories.workers import note_worker
from store.session import Sessions, session_scope
from store.tables.jobs import Job
from tests.specs import spec_of
from tests.store.crowd import LEASE, Crowd

GB = 10**9
SMALL, LARGE = 16 * GB, 80 * GB


@pytest.fixture
def crowd(sessions: Sessions) -> Crowd:
    crowd = Crowd(sessions)
    crowd.team("a")
    return crowd


def post(crowd: Crowd, name: str = "job", device: Device = Device.ANY, **memory: int) -> str:
    return crowd.post("a", name, device=device, spec=spec_of() | ({"memory": memory} if memory else {}))


def see(crowd: Crowd, name: str, memory: int | None) -> None:
    with session_scope(crowd.sessions) as session:
        note_worker(session, name, name, "queue", Device.GPU, memory=memory)


def claim(crowd: Crowd, worker: str, memory: int | None, device: Device = Device.GPU) -> Job | None:
    able = Abilities(device, memory=memory)
    with session_scope(crowd.sessions) as session:
        is_there = claims.is_anything_claimable(session, able)
        job = claims.claim_next(session, worker, LEASE, able=able)
        assert is_there is (job is not None)
    return job


NEEDS = [{}, {"asked": LARGE}, {"asked": SMALL}, {"gpu": LARGE, "cpu": SMALL}, {"asked": SMALL, "gpu": SMALL + 1}]


@pytest.mark.parametrize("need", NEEDS)
def test_a_worker_takes_what_its_device_can_hold(crowd: Crowd, need: dict[str, int]) -> None:
    for device in (Device.CPU, Device.GPU):
        for memory in (SMALL, LARGE, None):
            post(crowd, **need)
            job = claim(crowd, "worker", memory, device)
            assert (job is not None) is can_take(device, memory, Device.ANY, need)
            if job is not None:
                crowd.end(job)


def test_a_job_that_fits_does_not_wait_behind_one_that_does_not(crowd: Crowd) -> None:
    for name, memory in (("big", LARGE), ("small", SMALL)):
        post(crowd, name, asked=memory)
    for memory, name in ((SMALL, "small"), (LARGE, "big")):
        job = claim(crowd, str(memory), memory)
        assert job is not None
        assert job.name == name


def is_busy(session: Session) -> None:
    assert claims.claim_next(session, "small", LEASE, able=Abilities(memory=SMALL)) is not None


def is_dead(session: Session) -> None:
    session.execute(text("UPDATE workers SET last_seen = last_seen - interval '2 minutes'"))


def drains(session: Session) -> None:
    session.execute(text("UPDATE workers SET is_draining = true"))


def is_hardly_smaller(session: Session) -> None:
    session.execute(text(f"UPDATE workers SET memory = {LARGE * 0.9}"))


def is_of_another_kind(session: Session) -> None:
    session.execute(text("UPDATE workers SET device = 'cpu'"))


def test_a_job_is_left_to_a_smaller_idle_worker_for_a_while(crowd: Crowd) -> None:
    see(crowd, "small", SMALL)
    post(crowd, "unknown")
    post(crowd, "big", gpu=SMALL + 1)
    first = claim(crowd, "large", LARGE)
    assert first is not None
    assert first.name == "big"
    assert claim(crowd, "large", LARGE) is None
    crowd.wait(LEFT.total_seconds() + 1)
    see(crowd, "small", SMALL)
    second = claim(crowd, "large", LARGE)
    assert second is not None
    assert second.name == "unknown"


@pytest.mark.parametrize("but", [is_busy, is_dead, drains, is_hardly_smaller, is_of_another_kind])
def test_it_is_not_left_to_one_that_cannot_take_it(crowd: Crowd, but: Callable[[Session], None]) -> None:
    see(crowd, "small", SMALL)
    for _ in range(2):
        post(crowd)
    assert claim(crowd, "large", LARGE) is None
    with session_scope(crowd.sessions) as session:
        but(session)
    assert claim(crowd, "large", LARGE) is not None


@pytest.mark.parametrize(("there_is", "is_elsewhere"), [(None, False), (SMALL, False), (LARGE, True)])
def test_what_a_look_finds_stays_with_the_job(crowd: Crowd, there_is: int | None, is_elsewhere: bool) -> None:
    see(crowd, "other", there_is)
    post(crowd, asked=GB)
    job = claim(crowd, "small", SMALL)
    assert job is not None
    with session_scope(crowd.sessions) as session:
        assert leases.note_memory(session, job.id, job.fence, {"cpu": 1, "gpu": LARGE}) is is_elsewhere
        leases.release(session, job.id, job.fence, "too big")
    with session_scope(crowd.sessions) as session:
        kept = session.scalars(select(Job)).one()
        assert (kept.attempt, kept.memory) == (0, {"asked": GB, "cpu": 1, "gpu": LARGE})
        assert "memory" not in kept.settled
    assert claim(crowd, "small", SMALL) is None
    assert claim(crowd, "large", LARGE) is not None
