"""A job that has run its time slice lets others go first, and loses nothing by it; and which jobs a worker takes at all."""

import threading
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import pairwise
from shutil import rmtree

import pytest
from sqlalchemy import text

from store.errors import CancelRequestedError
from store.repositories.claims import is_anything_claimable, yield_to_others
from store.repositories.events import events_after
from store.repositories.files import list_artifacts
from store.repositories.line import Abilities
from store.repositories.moves import lock_job
from store.repositories.steering import request_cancel, retry_job
from store.session import Sessions, session_scope
from store.settings import Settings
from store.states import JobState
from store.tables.jobs import Job
from tests.worker.conftest import LONG_PASS, Open, Post, Watch
from tests.worker.job.test_runner import library_run, without_seconds
from worker.base.context import KNOBS, WorkerContext, claim_job
from worker.job.runner import run_job
from worker.job.warm import WarmSlot
from worker.sandbox.messages import Memory

Claim = Callable[[], Job]
NEVER = threading.Event()
A_MOMENT = 0.1
"""A slice that is over after some elements."""


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"slice_seconds": A_MOMENT})


SAME = ("plan.json", "model/model.safetensors", "model/config.json")
"""What is the same in every run: of the trace and the report all but the seconds is, of the archive nothing."""


def digests(sessions: Sessions, job_id: str) -> dict[str, str]:
    with session_scope(sessions) as session:
        found = {artifact.name: artifact.sha256 for artifact in list_artifacts(session, job_id)}
    return {name: found[name] for name in SAME}


@pytest.fixture(scope="module")
def undisturbed(opened: Open, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The digests of what the same pass leaves without any service."""
    directory = tmp_path_factory.mktemp("undisturbed") / "pruned"
    library_run(opened, LONG_PASS).publish(directory)
    return {name: sha256((directory / name).read_bytes()).hexdigest() for name in SAME}


def reasons(sessions: Sessions, job_id: str) -> list[str]:
    with session_scope(sessions) as session:
        return [event.data.get("reason", "") for event in events_after(session, job_id, limit=1000).items]


def test_a_job_that_nobody_waits_behind_runs_on(context: WorkerContext, post: Post, watch: Watch, claim: Claim) -> None:
    job_id = post(knobs=LONG_PASS)
    assert run_job(context, claim(), NEVER)
    assert watch.job(job_id).state is JobState.SUCCEEDED
    assert watch.events(job_id).count("job.queued") == 0


@pytest.mark.slow
@pytest.mark.parametrize("is_warm", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["warm", "replayed"])
def test_two_jobs_take_turns_and_end_as_if_undisturbed(
    context: WorkerContext,
    post: Post,
    watch: Watch,
    claim: Claim,
    sessions: Sessions,
    opened: Open,
    undisturbed: dict[str, str],
    is_warm: bool,
) -> None:
    first, second = post(knobs=LONG_PASS), post(knobs=LONG_PASS)
    turns = []
    with WarmSlot() as warm:
        while any(watch.job(one).state is JobState.QUEUED for one in (first, second)):
            job = claim()
            turns.append(job.id)
            assert run_job(context, job, NEVER, warm if is_warm else None)
        assert warm.is_empty

    assert turns[:4] == [first, second, first, second]
    whole = library_run(opened, LONG_PASS)
    for job_id in (first, second):
        job = watch.job(job_id)
        assert (job.state, job.attempt) == (JobState.SUCCEEDED, 1)
        assert watch.events(job_id).count("job.queued") >= 2
        assert without_seconds(watch.trials(job_id)) == without_seconds(whole.trace)
        assert all(early.seconds <= late.seconds for early, late in pairwise(watch.trials(job_id)))
        assert digests(sessions, job_id) == undisturbed
    assert any("time slice" in reason for reason in reasons(sessions, first))
    stayed = [any("still in memory" in reason for reason in reasons(sessions, one)) for one in (first, second)]
    assert stayed == [is_warm, False]
    assert list(context.settings.work_dir.iterdir()) == []


@pytest.fixture
def warm() -> Iterator[WarmSlot]:
    with WarmSlot() as slot:
        yield slot


@pytest.fixture
def yielded(context: WorkerContext, post: Post, claim: Claim, warm: WarmSlot) -> str:
    """A job whose slice is over, kept in memory behind one that waits."""
    job_id = post(knobs=LONG_PASS)
    job = claim()
    post(knobs=LONG_PASS)
    assert run_job(context, job, NEVER, warm)
    assert not warm.is_empty
    return job_id


def test_a_pass_that_was_kept_is_not_taken_up_if_somebody_else_had_the_job(
    context: WorkerContext, watch: Watch, claim: Claim, sessions: Sessions, warm: WarmSlot, yielded: str
) -> None:
    with session_scope(sessions) as session:
        request_cancel(session, yielded)
        retry_job(session, yielded)
    while claim().id != yielded:
        pass
    assert warm.take(watch.job(yielded)) is None
    assert warm.is_empty
    assert list(context.settings.work_dir.iterdir()) == []


def test_a_pass_whose_files_were_cleared_away_is_not_taken_up(
    context: WorkerContext, watch: Watch, claim: Claim, warm: WarmSlot, yielded: str
) -> None:
    rmtree(context.settings.work_dir)
    while claim().id != yielded:
        pass
    assert warm.take(watch.job(yielded)) is None
    assert warm.is_empty


def test_a_pass_that_was_kept_is_given_up_where_another_job_needs_its_memory(
    watch: Watch, warm: WarmSlot, yielded: str
) -> None:
    free = Memory(host_bytes=100, device_bytes=10)
    warm.make_room(free, free)
    assert not warm.is_empty
    warm.make_room(Memory(host_bytes=100, device_bytes=11), free)
    assert warm.is_empty
    assert watch.job(yielded).state is JobState.QUEUED


def test_a_job_that_is_being_cancelled_does_not_yield(sessions: Sessions, post: Post, claim: Claim) -> None:
    post()
    job = claim()
    post()
    with session_scope(sessions) as session:
        request_cancel(session, job.id)
    with session_scope(sessions) as session, pytest.raises(CancelRequestedError):
        yield_to_others(session, job.id, job.fence, "test")


def test_a_job_yields_only_to_one_that_goes_before_it(
    sessions: Sessions, post: Post, claim: Claim, watch: Watch
) -> None:
    job_id = post(priority=1)
    job = claim()
    behind = post(priority=0)
    before = watch.job(job_id)
    with session_scope(sessions) as session:
        assert yield_to_others(session, job.id, job.fence, "test") is None
    after = watch.job(job_id)
    unchanged = ("state", "attempt", "fence", "worker", "event_count", "waits_since")
    assert [getattr(after, name) for name in unchanged] == [getattr(before, name) for name in unchanged]

    equal = post(priority=1)
    with session_scope(sessions) as session:
        assert yield_to_others(session, job.id, job.fence, "test") == job.fence + 1
    assert (watch.job(job_id).state, watch.job(job_id).attempt) == (JobState.QUEUED, 0)
    assert [claim().id for _ in range(3)] == [equal, job_id, behind]


def test_a_job_with_knobs_of_a_newer_release_is_left_to_a_newer_worker(
    sessions: Sessions, post: Post, claim: Claim, context: WorkerContext
) -> None:
    newer = post()
    with session_scope(sessions) as session:
        job = lock_job(session, newer)
        job.spec = job.spec | {"config": job.config | {"a_knob_to_come": 1}}
    assert claim_job(context) is None
    known = post()
    job = claim()
    assert job.id == known
    with session_scope(sessions) as session:
        assert yield_to_others(session, job.id, job.fence, "test", able=Abilities(knobs=KNOBS)) is None
        assert is_anything_claimable(session)
        assert not is_anything_claimable(session, Abilities(knobs=KNOBS))


REVISION = "SELECT version_num FROM alembic_version"


@pytest.fixture(params=["ahead", "behind"])
def other_schema(request: pytest.FixtureRequest, sessions: Sessions) -> Iterator[Callable[[], None]]:
    """Says of the database that it has another schema than this code; its columns are not changed."""
    with session_scope(sessions) as session:
        known = session.scalar(text(REVISION))

    def set_to(revision: str | None) -> None:
        with session_scope(sessions) as session:
            session.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})

    yield lambda: set_to(request.param)
    set_to(known)


def test_a_worker_takes_nothing_from_a_database_of_another_schema(
    context: WorkerContext, post: Post, other_schema: Callable[[], None]
) -> None:
    post()
    other_schema()
    assert claim_job(context) is None


def test_a_job_that_was_claimed_before_a_migration_goes_on_to_its_end(
    context: WorkerContext, post: Post, claim: Claim, watch: Watch, other_schema: Callable[[], None]
) -> None:
    job_id = post()
    job = claim()
    other_schema()
    run_job(context, job, NEVER)
    assert watch.job(job_id).state is JobState.SUCCEEDED


def test_a_job_that_fails_because_of_a_migration_is_given_back(
    context: WorkerContext, post: Post, claim: Claim, watch: Watch, other_schema: Callable[[], None]
) -> None:
    """The storage stands in for whatever goes wrong in a worker that does not fit any more."""
    job_id = post()
    job = claim()
    other_schema()
    rmtree(context.settings.storage_dir)
    context.settings.storage_dir.write_text("a file where a directory should be")
    assert not run_job(context, job, NEVER)
    assert (watch.job(job_id).state, watch.job(job_id).attempt) == (JobState.QUEUED, 0)
