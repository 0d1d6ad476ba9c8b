"""A team with a tiny checkpoint and data under an opened directory, and a context on which its jobs are run."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.orm import Session, undefer

from axformer.config import make_config
from axformer.plan.trial import Trial
from store.repositories.events import events_after
from store.repositories.jobs import NewJob, create_job
from store.repositories.moves import lock_job
from store.repositories.trials import trials_after
from store.session import Sessions, session_scope
from store.settings import Settings
from store.tables.jobs import Job
from store.tables.teams import Team
from tests.specs import with_spec
from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows
from tests.worker.unconfined import Unconfined
from worker.base.context import WorkerContext, claim_job, open_context
from worker.sandbox.sandboxes import Sandboxes

LONG_PASS = {"neuron_group_size": 1, "refine_margin": 100.0}
"""Knobs that make many trials of a tiny model, so that there is a middle to interrupt."""
GUESSING = {"accept_poor_model": True}
"""For jobs of the tiny model with some hundred rows, which suffice to see that it guesses."""


_WATCH_SECONDS = 180.0
"""For a job to come as far as a test waits for, on a loaded machine; the job's own end may be what never comes."""
_LOOK_SECONDS = 0.01
_BEATS = 3
"""Of a lease until it has surely acted on what was there before the first: that may have begun earlier, and each acts when its
transaction is over."""


@dataclass(frozen=True)
class Open:
    """The directory that ``file://`` references may point into."""

    root: Path

    def uri(self, name: str) -> str:
        return f"file://{self.root / name}"


@pytest.fixture(scope="session")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Open:
    """Holds ``checkpoint``, ``validation.jsonl``, ``test.jsonl``, ``train.jsonl``, and ``texts.jsonl`` without labels."""
    root = tmp_path_factory.mktemp("open")
    save_tiny_checkpoint(root / "checkpoint")
    write_rows(root / "validation.jsonl", tiny_rows(40))
    write_rows(root / "test.jsonl", tiny_rows(20, seed=1))
    write_rows(root / "train.jsonl", tiny_rows(30, seed=2))
    texts = [{"text": row["text"]} for row in tiny_rows(30, seed=3)]
    write_rows(root / "texts.jsonl", texts)
    return Open(root)


@pytest.fixture
def settings(database_url: str, tmp_path: Path, opened: Open) -> Settings:
    """Short beats and small batches."""
    return Settings(
        database_url=database_url,
        var_dir=tmp_path / "var",
        file_roots=(opened.root, tmp_path),
        device="cpu",
        heartbeat_seconds=0.05,
        lease_seconds=30.0,
        trial_batch=5,
        trial_batch_seconds=0.05,
    )


@pytest.fixture
def context(settings: Settings) -> Iterator[WorkerContext]:
    with Sandboxes(settings, Unconfined) as sandboxes, open_context(settings, sandboxes) as context:
        yield context


Post = Callable[..., str]


@pytest.fixture
def post(sessions: Sessions, team: Team, opened: Open) -> Post:
    """Makes a job of the tiny checkpoint and data, with some fields changed, and gives its id."""

    def make(**changes: Any) -> str:
        config = make_config("paper", changes.pop("knobs", {})).model_dump(mode="json")
        plain = {"team_id": team.id, "name": "job"}
        spec = {"checkpoint": {"uri": opened.uri("checkpoint")}, "validation": {"uri": opened.uri("validation.jsonl")}}
        with session_scope(sessions) as session:
            return create_job(session, NewJob(**plain | with_spec(changes, config=config, **spec))).job.id

    return make


@dataclass(frozen=True)
class Watch:
    """Looks at jobs from outside, as the API would."""

    sessions: Sessions

    def job(self, job_id: str) -> Job:
        with session_scope(self.sessions) as session:
            return session.get_one(Job, job_id, options=[undefer(Job.report)])

    def path(self, job_id: str) -> list[dict[str, Any]] | None:
        with session_scope(self.sessions) as session:
            return lock_job(session, job_id).path

    def trials(self, job_id: str) -> list[Trial]:
        with session_scope(self.sessions) as session:
            return list(trials_after(session, job_id, limit=10_000).items)

    def events(self, job_id: str) -> list[str]:
        with session_scope(self.sessions) as session:
            return [event.type for event in events_after(session, job_id, limit=100).items]

    def notes(self, job_id: str) -> list[str]:
        """Notes for the job's owner."""
        with session_scope(self.sessions) as session:
            events = events_after(session, job_id, limit=100).items
            return [note for event in events if event.type == "job.noted" for note in event.data["notes"]]

    def at_trial(self, job_id: str, count: int, act: Callable[[], None]) -> threading.Thread:
        """Act as soon as so many trials are stored; the thread has started and is to be joined."""
        deadline = time.monotonic() + _WATCH_SECONDS

        def wait() -> None:
            while len(self.trials(job_id)) < count:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{len(self.trials(job_id))} trials after {_WATCH_SECONDS:g} s, not {count}")
                time.sleep(_LOOK_SECONDS)
            act()

        thread = threading.Thread(target=wait)
        thread.start()
        return thread

    @contextmanager
    def in_the_middle(self, job_id: str, count: int, act: Callable[[], None]) -> Iterator[None]:
        """Act between two writes of this thread's worker, as soon as so many trials are stored."""
        with self.once(job_id, lambda: len(self.trials(job_id)) >= count, act):
            yield

    @contextmanager
    def once(self, job_id: str, has_come: Callable[[], bool], act: Callable[[], None]) -> Iterator[None]:
        """Act between two writes of this thread's worker, as soon as something has come, and hold it until its lease has seen
        that: a job that is quicker than the machine's clock has a middle too."""
        worker, beats = threading.current_thread(), threading.Semaphore(0)
        looks, acted = threading.Lock(), threading.Event()

        def committed(_: Session) -> None:
            if threading.current_thread() is not worker:
                if acted.is_set() and threading.current_thread().name == f"lease-{job_id}":
                    beats.release()
            elif not acted.is_set() and looks.acquire(blocking=False):  # the look commits, too
                try:
                    if not has_come():
                        return
                    act()
                    acted.set()
                finally:
                    looks.release()
                for _beat in range(_BEATS):
                    assert beats.acquire(timeout=_WATCH_SECONDS)

        event.listen(Session, "after_commit", committed)
        try:
            yield
        finally:
            event.remove(Session, "after_commit", committed)
        assert acted.is_set(), "the job ended before its middle"


@pytest.fixture
def watch(sessions: Sessions) -> Watch:
    return Watch(sessions)


@pytest.fixture
def claim(context: WorkerContext) -> Callable[[], Job]:
    """Claims the next job, which must exist."""

    def take() -> Job:
        job = claim_job(context)
        assert job is not None
        return job

    return take
