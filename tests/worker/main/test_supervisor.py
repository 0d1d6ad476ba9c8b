"""The supervisor takes jobs from processes that do not stop, and ends those; all others it leaves alone."""

import itertools
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from sqlalchemy import update

from store.repositories.claims import claim_next
from store.repositories.leases import finish_failed, release
from store.repositories.moves import lock_job
from store.repositories.steering import request_cancel, request_pause
from store.session import Sessions, make_engine, make_sessions, session_scope
from store.settings import Settings
from store.states import JobState
from store.tables.jobs import Job
from tests.worker.conftest import Post, Watch
from worker.base.context import worker_name
from worker.main.supervisor import Supervisor, kill_tree

OBEY_SECONDS = 20.0
LONG_AGO = timedelta(hours=1)
A_MOMENT_AGO = timedelta(seconds=1)
SLEEP = [sys.executable, "-c", "import time; time.sleep(1000)"]
WITH_A_CHILD = [sys.executable, "-c", f"import subprocess; subprocess.run({SLEEP!r})"]


@dataclass
class Scene:
    """A process that holds a job, and who watches it."""

    process: subprocess.Popen[bytes]
    job: Job
    sessions: Sessions
    supervisor: Supervisor
    discarded: list[str] = field(default_factory=list)
    killed: list[int] = field(default_factory=list)
    """The processes that were ended, each as often as that was done."""

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def set(self, **values: Any) -> None:
        with session_scope(self.sessions) as session:
            session.execute(update(Job).where(Job.id == self.job.id).values(**values))

    def cancel(self, ago: timedelta) -> None:
        with session_scope(self.sessions) as session:
            request_cancel(session, self.job.id)
        self.set(cancel_requested_at=datetime.now(UTC) - ago)

    def look(self) -> None:
        self.supervisor.look()
        if any(psutil.pid_exists(pid) for pid in [self.process.pid]):
            time.sleep(0.2)  # a killed process is gone a moment later


@pytest.fixture
def make_scene(sessions: Sessions, post: Post) -> Iterator[Callable[..., Scene]]:
    scenes: list[Scene] = []

    def make(obey_seconds: float = OBEY_SECONDS) -> Scene:
        post()
        process = subprocess.Popen(SLEEP)
        with session_scope(sessions) as session:
            job = claim_next(session, worker_name(process.pid), 60)
        assert job is not None
        discarded: list[str] = []
        killed: list[int] = []

        def alive() -> list[int]:
            return [process.pid] if process.poll() is None else []

        def kill(pid: int) -> None:
            killed.append(pid)
            kill_tree(pid)

        supervisor = Supervisor(sessions, alive, kill, discarded.append, obey_seconds=obey_seconds, every_seconds=0.05)
        scenes.append(Scene(process, job, sessions, supervisor, discarded, killed))
        return scenes[-1]

    yield make
    for scene in scenes:
        scene.process.kill()
        scene.process.wait()


@pytest.fixture
def scene(make_scene: Callable[..., Scene]) -> Scene:
    return make_scene()


def test_a_process_that_works_is_left_alone(scene: Scene, watch: Watch) -> None:
    before = watch.job(scene.job.id)
    scene.look()
    assert scene.is_alive
    assert watch.job(scene.job.id).fence == before.fence
    assert watch.events(scene.job.id) == ["job.created", "job.fetching"]


def test_a_process_has_time_to_cancel_by_itself(scene: Scene, watch: Watch) -> None:
    scene.cancel(A_MOMENT_AGO)
    scene.look()
    assert scene.is_alive
    assert watch.job(scene.job.id).state is JobState.CANCELLING


def test_a_process_that_dies_before_it_was_seen_with_its_job_is_missed(scene: Scene, watch: Watch) -> None:
    with session_scope(scene.sessions) as session:
        release(session, scene.job.id, scene.job.fence, "test")
    scene.supervisor.look()
    with session_scope(scene.sessions) as session:
        assert claim_next(session, worker_name(scene.process.pid), 60) is not None
    scene.process.kill()
    scene.process.wait()
    scene.supervisor.look()
    assert watch.events(scene.job.id)[-1] == "job.worker_lost"


def test_a_process_that_does_not_pause_is_ended_and_the_job_is_paused(
    make_scene: Callable[..., Scene], watch: Watch
) -> None:
    scene = make_scene(obey_seconds=0.3)
    with session_scope(scene.sessions) as session:
        request_pause(session, scene.job.id)
    scene.supervisor.look()
    assert scene.is_alive
    time.sleep(0.4)
    scene.look()
    assert not scene.is_alive
    assert watch.job(scene.job.id).state is JobState.PAUSED
    assert scene.discarded == []


def test_a_process_that_does_not_cancel_is_ended_and_the_job_is_cancelled(scene: Scene, watch: Watch) -> None:
    scene.cancel(LONG_AGO)
    scene.look()
    assert not scene.is_alive
    assert watch.job(scene.job.id).state is JobState.CANCELLED
    assert scene.discarded == [scene.job.id]


def test_a_process_that_does_not_renew_its_lease_is_ended_and_the_job_taken_over(
    scene: Scene, watch: Watch, claim: Callable[[], Job]
) -> None:
    scene.set(lease_until=datetime.now(UTC) - A_MOMENT_AGO)
    scene.look()
    assert scene.is_alive
    scene.set(lease_until=datetime.now(UTC) - LONG_AGO)
    scene.look()
    assert not scene.is_alive
    taken = claim()
    assert (taken.id, taken.attempt) == (scene.job.id, 2)
    assert scene.discarded == []


def test_a_job_whose_process_has_died_is_claimed_at_once(scene: Scene, watch: Watch, claim: Callable[[], Job]) -> None:
    scene.look()
    scene.process.kill()
    scene.process.wait()
    scene.look()
    assert watch.events(scene.job.id)[-1] == "job.worker_lost"
    taken = claim()
    assert (taken.id, taken.attempt) == (scene.job.id, 2)
    scene.look()
    assert watch.job(scene.job.id).fence == taken.fence


def test_a_job_is_taken_from_a_dead_process_once(scene: Scene, watch: Watch) -> None:
    scene.look()
    scene.process.kill()
    scene.process.wait()
    for _ in range(3):
        scene.look()
    assert watch.events(scene.job.id).count("job.worker_lost") == 1
    assert scene.killed == [], "its id may be another process's by now"


def test_only_processes_of_its_own_are_killed() -> None:
    with subprocess.Popen(WITH_A_CHILD) as parent:
        try:
            own = psutil.Process(parent.pid)
            while not (children := own.children()):
                time.sleep(0.02)
            (strangers,) = children
            kill_tree(strangers.pid)
            assert psutil.wait_procs([strangers], timeout=0.5) == ([], [strangers])
            kill_tree(parent.pid)
            _, alive = psutil.wait_procs([strangers], timeout=OBEY_SECONDS)
            assert alive == []
        finally:
            parent.kill()


def test_a_process_that_has_lost_its_job_and_works_on_is_ended(
    make_scene: Callable[..., Scene], claim: Callable[[], Job], watch: Watch
) -> None:
    scene = make_scene(obey_seconds=0.1)
    scene.look()
    scene.set(lease_until=datetime.now(UTC) - A_MOMENT_AGO)
    taken = claim()
    time.sleep(0.2)  # the worker as a whole was stopped, and what it has missed is not held against its processes
    scene.look()
    assert scene.is_alive
    scene.look()
    assert not scene.is_alive
    assert watch.job(scene.job.id).fence == taken.fence


def test_a_job_that_its_process_has_just_ended_costs_the_process_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the deed the process comes to its senses: what the supervisor takes it takes under the fence."""
    scene.cancel(LONG_AGO)
    from worker.main import supervisor

    seen = supervisor.held_by

    def then_it_ends(session: Any, workers: Any) -> Any:
        held = seen(session, workers)
        with session_scope(scene.sessions) as other:
            finish_failed(other, scene.job.id, scene.job.fence, {"code": "x", "message": "y"})
        return held

    monkeypatch.setattr(supervisor, "held_by", then_it_ends)
    scene.look()
    assert scene.is_alive


def assert_given_back_at_the_end(scene: Scene, watch: Watch) -> None:
    """A supervisor that ends its process gives the job back as if it had not begun."""
    scene.supervisor.start()
    scene.process.wait(60)
    scene.supervisor.stop()
    job = watch.job(scene.job.id)
    assert (job.state, job.attempt, job.worker) == (JobState.QUEUED, 0, None)
    assert "job.worker_lost" not in watch.events(scene.job.id)


def test_a_worker_that_is_to_end_gives_back_what_its_process_does_not(
    make_scene: Callable[..., Scene], watch: Watch
) -> None:
    scene = make_scene(obey_seconds=0.1)
    scene.supervisor.end_children()
    scene.supervisor.end_children()
    assert_given_back_at_the_end(scene, watch)


def test_a_job_whose_row_its_stopped_process_holds_is_given_back_once_that_is_killed(
    settings: Settings, make_scene: Callable[..., Scene], watch: Watch
) -> None:
    """A process may be stuck in a transaction of its own; its lock ends with it."""
    scene = make_scene(obey_seconds=0.1)
    quick = settings.database.model_copy(update={"lock_timeout_ms": 100})
    engine = make_engine(settings.model_copy(update={"database": quick}))
    impatient = make_sessions(engine)
    scene.supervisor._sessions = impatient
    with session_scope(scene.sessions) as stuck:
        lock_job(stuck, scene.job.id)
        scene.supervisor.end_children()
        scene.supervisor.start()
        scene.process.wait(60)
    scene.supervisor.stop()
    job = watch.job(scene.job.id)
    assert (job.state, job.attempt, job.worker) == (JobState.QUEUED, 0, None)
    engine.dispose()


@pytest.mark.parametrize("ticks", range(1, 13))
def test_wherever_in_a_look_the_time_to_end_is_over_the_job_is_given_back_first(
    make_scene: Callable[..., Scene], watch: Watch, monkeypatch: pytest.MonkeyPatch, ticks: int
) -> None:
    """On a clock that ticks each time somebody reads it; a few readings make a look."""
    scene = make_scene(obey_seconds=ticks)
    ticking = itertools.count()
    monkeypatch.setattr("worker.main.supervisor.time", SimpleNamespace(monotonic=lambda: next(ticking)))
    scene.supervisor.end_children()
    assert_given_back_at_the_end(scene, watch)


def test_a_process_is_ended_with_all_that_it_has_started() -> None:
    process = subprocess.Popen(WITH_A_CHILD)
    try:
        children: list[psutil.Process] = []
        deadline = time.monotonic() + 60
        while not children and time.monotonic() < deadline:
            children = psutil.Process(process.pid).children()
        kill_tree(process.pid)
        process.wait(60)
        assert children
        _, left = psutil.wait_procs(children, timeout=60)
        assert left == []
        kill_tree(process.pid)
    finally:
        process.kill()


def test_a_job_that_was_given_back_is_not_lost(scene: Scene, watch: Watch) -> None:
    with session_scope(scene.sessions) as session:
        release(session, scene.job.id, scene.job.fence, "test")
        assert lock_job(session, scene.job.id).worker is None
    scene.look()
    assert scene.is_alive
    assert watch.job(scene.job.id).state is JobState.QUEUED


HUNG = """
import threading
from worker.main.supervisor import end_if_hung
stopping = threading.Event()
threading.Thread(target=end_if_hung, args=(stopping, 0.2), daemon=True).start()
def join_a_pool_that_never_ends():
    threading.Event().wait()
{told}
join_a_pool_that_never_ends()
"""


def test_a_worker_that_hangs_after_it_was_told_to_stop_ends_and_says_where() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HUNG.format(told="stopping.set()")], capture_output=True, text=True, check=True
    )
    assert "worker_hung" in done.stdout + done.stderr
    assert "join_a_pool_that_never_ends" in done.stdout + done.stderr


def test_a_worker_that_was_not_told_to_stop_goes_on() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", HUNG.format(told="")], capture_output=True, timeout=6.0, check=False)
