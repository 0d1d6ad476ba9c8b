"""A job that fills the disk is ended before the disk is full, and a thread that does nothing is seen."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from axformer.wire.devices import Device
from store.repositories.audit import Operator, check_chain, note
from store.repositories.workers import find_worker, note_worker
from store.session import Sessions, make_engine, make_sessions, session_scope
from store.settings import Settings
from store.states import JobState
from store.tables.jobs import Job
from store.tables.teams import Team
from tests.worker.conftest import Post, Watch
from tests.worker.sandbox.rogue import Rogue, Voice
from worker.base.context import WorkerContext, claim_job
from worker.base.periodic import Periodic
from worker.base.trees import remove_tree
from worker.job.runner import run_job
from worker.main import watches
from worker.main.watches import AuditChain, DiskWatch, SuccessWatch, Taken, taken_by
from worker.sandbox.messages import TrialMade
from worker.sandbox.sandboxes import Sandboxes

Claim = Callable[[], Job]


def full(settings: Settings, **changes: object) -> Settings:
    """Settings by which the disk has too little room."""
    fetch = settings.fetch.model_copy(update={"keep_free_bytes": 2**60})
    return settings.model_copy(update={"fetch": fetch} | changes)


def directory_of(settings: Settings, job_id: str, size: int) -> Path:
    directory = settings.work_dir / f"{job_id}.x"
    (directory / "made").mkdir(parents=True)
    (directory / "errors.log").touch()
    (directory / "made" / "big").write_bytes(b"x" * size)
    return directory


def test_of_the_jobs_at_work_the_largest_ends_and_no_other_until_it_is_gone(
    settings: Settings, sessions: Sessions, post: Post, claim: Claim, watch: Watch
) -> None:
    jobs = [post() for _ in range(3)]
    claim(), claim()  # the third waits, with a process that is kept
    for job_id, size in zip(jobs, (10_000, 1_000_000, 5_000_000), strict=True):
        directory_of(settings, job_id, size)
    guard = DiskWatch(sessions, full(settings))
    for _ in range(2):
        guard.once()
        assert [watch.job(one).state for one in jobs] == [JobState.FETCHING, JobState.FAILED, JobState.QUEUED]
    error = watch.job(jobs[1]).error
    assert error is not None
    assert (error["code"], error["retryable"]) == ("disk_full", True)


def test_a_disk_with_room_ends_nothing_but_who_takes_too_much(
    settings: Settings, sessions: Sessions, post: Post, claim: Claim, watch: Watch
) -> None:
    jobs = [post() for _ in range(2)]
    claim(), claim()
    for job_id, size in zip(jobs, (10_000, 1_000_000), strict=True):
        directory_of(settings, job_id, size)
    DiskWatch(sessions, settings).once()
    assert {watch.job(one).state for one in jobs} == {JobState.FETCHING}
    DiskWatch(sessions, settings.model_copy(update={"job_disk_bytes": 500_000})).once()
    assert [watch.job(one).state for one in jobs] == [JobState.FETCHING, JobState.FAILED]


def test_many_files_and_deep_directories_are_endless_and_inputs_count_nothing(settings: Settings) -> None:
    directory = directory_of(settings, "job_1", 5000)
    (directory / "inputs").mkdir()
    (directory / "inputs" / "model").write_bytes(b"x" * 10**6)
    assert 5000 <= taken_by(directory, 10).bytes < 100_000
    assert taken_by(directory, 1).bytes == float("inf")
    assert taken_by(settings.work_dir / "gone", 1) == Taken()
    here = Path.cwd()
    try:
        os.chdir(directory / "made")
        for _ in range(1500):
            Path("deep").mkdir()
            os.chdir("deep")
    finally:
        os.chdir(here)
    assert taken_by(directory, 10_000).bytes == float("inf")
    assert remove_tree(directory)


HOLDER = """
import os, sys
from worker.sandbox import own_root, privileges
directory = sys.argv[1]
try:
    privileges.separate()
    own_root.enter([], [directory + "/made"], directory + "/made")
except OSError as error:
    print(error, flush=True)
    sys.exit()
held = open(directory + "/made/removed", "wb")
held.write(b"x" * 3_000_000)
held.flush()
os.unlink(held.name)
print("ready", flush=True)
sys.stdin.read()
"""


def test_files_that_are_removed_and_still_open_count_for_their_job_alone(settings: Settings) -> None:
    own, other = directory_of(settings, "job_1", 5000), directory_of(settings, "job_2", 5000)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(own)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        said = holder.stdout.readline().strip()
        if said != "ready":
            pytest.skip(f"the machine grants no root of its own: {said}")
        assert 3_000_000 <= taken_by(own, 100).bytes < 3_100_000
        assert taken_by(other, 100).bytes < 100_000
        holder.communicate()
    assert taken_by(own, 100).bytes < 100_000


def test_a_real_job_is_ended_and_its_directory_goes(
    context: WorkerContext, sessions: Sessions, post: Post, watch: Watch
) -> None:
    def fills(voice: Voice) -> None:
        voice.behave_until_the_search()
        voice.result.parent.joinpath("big").write_bytes(b"x" * 10**6)
        (voice.result.parent.parent / "errors.log").touch()
        DiskWatch(sessions, full(context.settings)).once()
        voice.hear(TrialMade)

    post()
    with Sandboxes(context.settings, Rogue(fills)) as sandboxes:
        strange = replace(context, sandboxes=sandboxes)
        job = claim_job(strange)
        assert job is not None
        run_job(strange, job, threading.Event())
    error = watch.job(job.id).error
    assert error is not None
    assert error["code"] == "disk_full"
    assert list(context.settings.work_dir.iterdir()) == []


def test_where_the_database_refuses_the_space_is_freed_all_the_same(settings: Settings) -> None:
    directory = directory_of(settings, "job_1", 5000)
    away = settings.model_copy(
        update={"database_url": type(settings.database_url)("postgresql+psycopg://127.0.0.1:1/x")}
    )
    engine = make_engine(away)
    with pytest.raises(OperationalError):
        DiskWatch(make_sessions(engine), full(settings)).once()
    engine.dispose()
    assert not (directory / "made").exists()


class Sometimes(Periodic):
    """Works while it is told to."""

    works = True

    def once(self) -> None:
        if not self.works:
            raise OSError("the disk is away")


def test_when_a_thread_last_did_its_work_is_written(sessions: Sessions) -> None:
    with session_scope(sessions) as session:
        note_worker(session, "host:1", "host:2", "axformer", Device.CPU)
    janitor = Sometimes("janitor", 1.0)
    told = SuccessWatch(sessions, "host:1", [janitor, Sometimes("courier", 1.0)])

    def written() -> dict[str, float] | None:
        told.once()
        with session_scope(sessions) as session:
            worker = find_worker(session, "host:1")
            assert worker is not None
            return worker.succeeded_at

    assert written() == {}
    janitor.try_once()
    first = written()
    assert first == {"janitor": janitor.succeeded_at}
    janitor.works = False
    janitor.try_once()
    assert written() == first


def test_a_worker_chains_all_entries_of_the_audit_log_that_wait(
    settings: Settings, sessions: Sessions, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "_CHAIN_MOST", 2)
    with session_scope(sessions) as session:
        note(session, Operator(team.id), "job.cancel", *"abcde")
    for waiting in (3, 1, 0, 0):
        AuditChain(sessions, settings).once()
        with session_scope(sessions) as session:
            found = check_chain(session)
        assert (found.head.partition(":")[0], found.waiting, found.broken) == (f"{5 - waiting}", waiting, None)
