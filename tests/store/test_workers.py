"""Which workers there are: known by what they say, and alive as long as they are seen."""

from sqlalchemy import select

from axformer.wire.devices import Device
from store.repositories import leases
from store.repositories.workers import FORGOTTEN_AFTER, find_worker, living_workers, note_worker, see_worker
from store.session import Sessions, session_scope
from store.tables.workers import Worker
from tests.store.crowd import Crowd


def note(sessions: Sessions, name: str, device: Device = Device.CPU) -> None:
    with session_scope(sessions) as session:
        note_worker(session, name, f"{name} now", "queue", device)


def alive(sessions: Sessions, within: float = 60) -> list[str]:
    with session_scope(sessions) as session:
        return [worker.name for worker in living_workers(session, within)]


def test_a_worker_is_alive_as_long_as_it_is_seen(sessions: Sessions) -> None:
    crowd = Crowd(sessions)
    note(sessions, "a")
    note(sessions, "b", Device.GPU)
    assert alive(sessions) == ["a", "b"]
    crowd.wait(50)
    with session_scope(sessions) as session:
        see_worker(session, "b")
        see_worker(session, "nobody")
    crowd.wait(50)
    assert alive(sessions) == ["b"]
    note(sessions, "a", Device.GPU)
    with session_scope(sessions) as session:
        again = find_worker(session, "a")
        assert again is not None
        assert again.device is Device.GPU
    assert alive(sessions) == ["a", "b"]


def test_a_heartbeat_keeps_the_worker_alive(sessions: Sessions) -> None:
    crowd = Crowd(sessions)
    crowd.team("a")
    crowd.post("a")
    note(sessions, "busy")
    job = crowd.claim("busy now")
    assert job is not None
    crowd.wait(100)
    assert alive(sessions) == []
    with session_scope(sessions) as session:
        leases.heartbeat(session, job.id, job.fence, 60)
    assert alive(sessions) == ["busy"]


def test_a_worker_that_was_silent_for_long_is_forgotten(sessions: Sessions) -> None:
    note(sessions, "old")
    Crowd(sessions).wait(FORGOTTEN_AFTER.total_seconds() + 1)
    note(sessions, "new")
    with session_scope(sessions) as session:
        assert session.scalars(select(Worker.name)).all() == ["new"]
