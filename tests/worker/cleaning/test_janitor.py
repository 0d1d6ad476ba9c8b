"""What is past its time goes, what nobody owns goes, and what somebody needs stays."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as law
from hypothesis import strategies as st
from pydantic import SecretStr
from sqlalchemy import func, select, update

from store.embedded.postgres import start_postgres
from store.embedded.server import running
from store.repositories import claims, jobs, leases, retention, steering
from store.repositories.audit import Operator, chain, check_chain, entries_before, note
from store.repositories.events import events_after
from store.repositories.files import add_upload, find_upload, hold_upload, list_artifacts
from store.repositories.revision import DatabaseMark, database_mark
from store.session import Sessions, make_engine, make_sessions, session_scope
from store.setting_groups import RetainSettings
from store.settings import Settings
from store.states import TERMINAL, JobState
from store.storage.storage import LocalStorage, job_folder, upload_folder
from store.tables.audit import AuditEntry
from store.tables.files import Artifact, Upload
from store.tables.jobs import Job
from store.tables.teams import Team
from tests.faults.service import kill_tree
from tests.store.makers import Makers
from worker.fetching.cache import ContentCache
from worker.janitor import Cleaned, clean
from worker.sandbox.workspace import locked_directory

DAY = 86_400.0
LONG_AGO = time.time() - 10 * DAY
SILENT_SECONDS = 30
"""As long as who writes may be silent."""


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return Settings(database_url=database_url, var_dir=tmp_path / "var")


@pytest.fixture
def storage(settings: Settings) -> LocalStorage:
    return LocalStorage(settings.storage_dir)


@pytest.fixture
def make(team: Team) -> Makers:
    return Makers(team.id)


def ended(sessions: Sessions, make: Makers, storage: LocalStorage, *, days_ago: float, **changes: object) -> str:
    """A job that succeeded with a file so long ago."""
    with session_scope(sessions) as session:
        job = jobs.create_job(session, make.job(**changes)).job
        claimed = claims.claim_next(session, "worker", 60)
        assert claimed is not None
        for state in (JobState.VALIDATING, JobState.RUNNING, JobState.PACKAGING):
            leases.set_state(session, job.id, claimed.fence, state)
        stored = storage.put(job_folder(job.id), [job.id.encode()])
        file = Artifact(
            job_id=job.id, name="plan.json", sha256=stored.sha256, bytes=stored.bytes, media_type="application/json"
        )
        leases.finish_succeeded(session, job.id, claimed.fence, {"removed": []}, [file])
        backdate(session, job.id, days_ago)
    return job.id


def backdate(session, job_id: str, days: float) -> None:
    session.execute(update(Job).where(Job.id == job_id).values(finished_at=func.now() - timedelta(days=days)))


def uploaded(sessions: Sessions, storage: LocalStorage, team: Team, upload_id: str, *, days_ago: float) -> str:
    stored = storage.put(upload_folder(upload_id), [upload_id.encode()])
    with session_scope(sessions) as session:
        row = Upload(id=upload_id, team_id=team.id, filename="dev.jsonl", sha256=stored.sha256, bytes=stored.bytes)
        add_upload(session, row)
        session.execute(
            update(Upload).where(Upload.id == upload_id).values(created_at=func.now() - timedelta(days=days_ago))
        )
    return upload_id


def age(path: Path, when: float = LONG_AGO) -> None:
    os.utime(path, (when, when))


def keeping(settings: Settings, **days: float) -> Settings:
    return settings.model_copy(
        update={"retain": RetainSettings(**{f"{name}_days": value for name, value in days.items()})}
    )


def files(settings: Settings) -> set[str]:
    root = settings.storage_dir
    return {str(path.relative_to(root).parent) for path in root.rglob("*/*/*") if path.is_file()}


def test_what_a_killed_worker_was_sending_goes_and_what_a_living_one_sends_stays(
    sessions: Sessions, settings: Settings, storage: LocalStorage
) -> None:
    kept, lock = locked_directory(settings.spool_dir)
    lost, young = settings.spool_dir / "lost", settings.spool_dir / "young"
    for directory in (lost, young):
        directory.mkdir()
        (directory / "file").touch()
    for directory in (lost, kept):
        age(directory, time.time() - 61)
    assert clean(sessions, settings, storage).unfinished == 1
    assert set(settings.spool_dir.iterdir()) == {kept, young}
    os.close(lock)
    assert clean(sessions, settings, storage).unfinished == 1


def test_a_clock_that_jumps_an_hour_ahead_removes_nothing_that_is_being_written(
    sessions: Sessions, settings: Settings, storage: LocalStorage
) -> None:
    ContentCache(settings.cache_dir)
    places = settings.storage_dir / "incoming" / "upload", settings.cache_dir / "incoming" / "download"
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
        age(place, time.time() - 3600 - SILENT_SECONDS)
    assert clean(sessions, settings, storage) == Cleaned()
    assert all(place.exists() for place in places)


def test_a_crash_of_the_database_takes_back_nothing_that_was_noted_of_it(server_directory: Path) -> None:
    directory = server_directory / "crash"
    slow = {"wal_writer_delay": "10s", "wal_writer_flush_after": "0"}
    server = start_postgres(directory, directory / "postgres.log", slow)
    try:
        with closing(psycopg.connect(server.url)) as other:
            other.execute("CREATE SEQUENCE counted")
            other.commit()
            other.execute("SELECT nextval('counted'), nextval('counted')")  # is not committed
            before = mark_of(server.url)
        kill_tree(server.child.process)
    finally:
        server.stop()
    with running(start_postgres(directory, directory / "postgres.log", slow)) as server:
        after = mark_of(server.url)
    assert before.counted == 2
    assert all(now >= then for now, then in zip(after, before, strict=True)), (before, after)


def mark_of(url: str) -> DatabaseMark:
    engine = make_engine(Settings(database_url=SecretStr(url)))
    with session_scope(make_sessions(engine)) as session:
        mark = database_mark(session)
    engine.dispose()
    return mark


def test_by_default_nothing_that_ended_is_ever_removed(
    sessions: Sessions, settings: Settings, storage: LocalStorage, make: Makers, team: Team
) -> None:
    ended(sessions, make, storage, days_ago=10_000)
    uploaded(sessions, storage, team, "upl_1", days_ago=10_000)
    assert clean(sessions, settings, storage) == Cleaned()
    assert len(files(settings)) == 2


def test_old_jobs_go_with_their_files_and_young_and_unfinished_ones_stay(
    sessions: Sessions, settings: Settings, storage: LocalStorage, make: Makers
) -> None:
    ended(sessions, make, storage, days_ago=31)
    young = ended(sessions, make, storage, days_ago=29)
    with session_scope(sessions) as session:
        waiting = jobs.create_job(session, make.job()).job.id
    cleaned = clean(sessions, keeping(settings, job=30), storage)
    assert cleaned == Cleaned(jobs=1)
    with session_scope(sessions) as session:
        assert set(session.scalars(select(Job.id))) == {young, waiting}
    assert files(settings) == {job_folder(young)}


def test_a_job_outlives_its_files_and_its_events(
    sessions: Sessions, settings: Settings, storage: LocalStorage, make: Makers
) -> None:
    old = ended(sessions, make, storage, days_ago=8)
    cleaned = clean(sessions, keeping(settings, artifact=7), storage)
    assert cleaned.job_files == 1
    assert files(settings) == set()
    with session_scope(sessions) as session:
        assert list_artifacts(session, old) == []
        last = events_after(session, old, limit=100).items[-1]
        assert (last.type, last.data["artifacts"]) == ("job.artifacts_removed", ["plan.json"])
    assert clean(sessions, keeping(settings, artifact=7, event=7), storage).job_events == 1
    with session_scope(sessions) as session:
        assert events_after(session, old, limit=100).items == []
        job = session.scalars(select(Job)).one()
        assert (job.state, job.report) == (JobState.SUCCEEDED, {"removed": []})
    assert clean(sessions, keeping(settings, artifact=7, event=7), storage) == Cleaned()


def test_entries_of_the_audit_log_go_by_their_own_age(
    sessions: Sessions, settings: Settings, storage: LocalStorage, make: Makers, team: Team
) -> None:
    ended(sessions, make, storage, days_ago=400)
    with session_scope(sessions) as session:
        note(session, Operator(team.id), "key.create", "old", "young")
        is_old = AuditEntry.object_id == "old"
        session.execute(update(AuditEntry).where(is_old).values(created_at=func.now() - timedelta(days=366)))
    assert clean(sessions, keeping(settings, audit=365), storage) == Cleaned(), "what is not chained yet stays"
    with session_scope(sessions) as session:
        chain(session, 10)
    assert clean(sessions, keeping(settings, audit=365), storage) == Cleaned(audit=1)
    with session_scope(sessions) as session:
        assert check_chain(session).broken is None
        assert [entry.object_id for entry in entries_before(session, team.id, limit=10).items] == ["young"]
    assert clean(sessions, keeping(settings, audit=365), storage) == Cleaned()


def test_an_upload_stays_as_long_as_any_job_names_it(
    sessions: Sessions, settings: Settings, storage: LocalStorage, make: Makers, team: Team
) -> None:
    for number, column in enumerate(("checkpoint", "validation", "test", "calibrate", "train")):
        uploaded(sessions, storage, team, f"upl_{number}", days_ago=100)
        ended(sessions, make, storage, days_ago=50, **{column: {"uri": f"upload:upl_{number}"}})
    uploaded(sessions, storage, team, "upl_unnamed", days_ago=100)
    uploaded(sessions, storage, team, "upl_young", days_ago=1)
    assert clean(sessions, keeping(settings, upload=30), storage) == Cleaned(uploads=1)
    assert clean(sessions, keeping(settings, upload=30, job=30), storage) == Cleaned(jobs=5, uploads=5)
    assert files(settings) == {upload_folder("upl_young")}


def test_an_upload_that_is_being_named_is_not_removed_and_one_that_is_being_removed_is_not_named(
    sessions: Sessions, settings: Settings, storage: LocalStorage, team: Team, make: Makers
) -> None:
    uploaded(sessions, storage, team, "upl_1", days_ago=100)
    with session_scope(sessions) as session:
        assert hold_upload(session, "upl_1", team.id) is not None
        assert clean(sessions, keeping(settings, upload=30), storage) == Cleaned()
    with ThreadPoolExecutor(1) as other:
        with session_scope(sessions) as session:
            assert retention.remove_old_uploads(session, timedelta(days=30)) == ["upl_1"]

            def name() -> Upload | None:
                with session_scope(sessions) as session:
                    return hold_upload(session, "upl_1", team.id)

            named = other.submit(name)
            with pytest.raises(TimeoutError):
                named.result(timeout=0.3)
        assert named.result() is None


def test_a_delete_that_died_after_its_commit_is_finished(
    sessions: Sessions, settings: Settings, storage: LocalStorage, make: Makers, team: Team
) -> None:
    gone, kept = (ended(sessions, make, storage, days_ago=0) for _ in range(2))
    uploaded(sessions, storage, team, "upl_gone", days_ago=0)
    young = uploaded(sessions, storage, team, "upl_justsent", days_ago=0)
    clean(sessions, settings, storage)
    age(next((settings.storage_dir / job_folder(gone)).iterdir()))
    with session_scope(sessions) as session:
        steering.delete_job(session, gone)
        for upload_id in ("upl_gone", young):
            session.delete(find_upload(session, upload_id, team.id))
    age(next((settings.storage_dir / upload_folder("upl_gone")).iterdir()))
    assert clean(sessions, settings, storage) == Cleaned(orphans=2)
    assert files(settings) == {job_folder(kept), upload_folder(young)}


def test_files_that_no_row_names_go_unless_a_worker_has_the_job(
    sessions: Sessions, settings: Settings, storage: LocalStorage, make: Makers
) -> None:
    done = ended(sessions, make, storage, days_ago=0)
    with session_scope(sessions) as session:
        jobs.create_job(session, make.job())
        held = claims.claim_next(session, "worker", 60)
        assert held is not None
    for job_id in (done, held.id):
        stray = storage.put(job_folder(job_id), [b"of a worker that was killed"])
        age(storage.path(job_folder(job_id), stray.sha256))
    storage.put(job_folder(done), [b"written just now"])
    assert clean(sessions, settings, storage) == Cleaned(orphans=1)
    assert len(storage.contents(job_folder(done), older_than=-1)) == 2
    assert len(storage.contents(job_folder(held.id), older_than=-1)) == 1
    with session_scope(sessions) as session:
        leases.release(session, held.id, held.fence, "stop")
    assert clean(sessions, settings, storage) == Cleaned(orphans=1)


def test_the_files_of_another_database_are_left_alone(
    sessions: Sessions, settings: Settings, storage: LocalStorage, make: Makers
) -> None:
    others = storage.put(job_folder("job_of_others"), [b"x"])
    age(storage.path(job_folder("job_of_others"), others.sha256))
    assert clean(sessions, settings, storage) == Cleaned()  # none of these jobs is known here
    ours = ended(sessions, make, storage, days_ago=0)
    assert clean(sessions, settings, storage) == Cleaned(orphans=1)
    (settings.storage_dir / "database").write_text("restored elsewhere")
    storage.put(job_folder("job_of_others"), [b"x"])
    age(storage.path(job_folder("job_of_others"), others.sha256))
    assert clean(sessions, settings, storage) == Cleaned()
    assert files(settings) == {job_folder(ours), job_folder("job_of_others")}


@pytest.mark.parametrize("days", [0.9, 1.1])
def test_a_folder_without_a_row_stays_while_anything_in_it_is_young(
    sessions: Sessions, settings: Settings, storage: LocalStorage, make: Makers, days: float
) -> None:
    ended(sessions, make, storage, days_ago=0)
    for folder in (job_folder("job_gone"), upload_folder("upl_gone")):
        for name, when in ((b"old", LONG_AGO), (b"young", time.time() - days * DAY)):
            age(storage.path(folder, storage.put(folder, [name]).sha256), when)
    assert clean(sessions, settings, storage) == Cleaned(orphans=2 * (days > 1))
    assert len(files(settings)) == (1 if days > 1 else 3)


@pytest.mark.parametrize("ahead", [(1, 0), (0, 1)], ids=["a dump", "files of the server, or a replica"])
def test_a_database_that_is_behind_its_storage_counts_as_another_until_somebody_has_looked(
    sessions: Sessions, settings: Settings, storage: LocalStorage, make: Makers, ahead: tuple[int, int]
) -> None:
    ended(sessions, make, storage, days_ago=0)
    assert clean(sessions, settings, storage) == Cleaned()
    note, lost = settings.storage_dir / "database", storage.put(job_folder("job_lost"), [b"x"])
    age(storage.path(job_folder("job_lost"), lost.sha256))
    database, _, marks = note.read_text().partition("\n")
    counted, transactions = (int(mark) + 10_000 * more for mark, more in zip(marks.split(), ahead, strict=True))
    note.write_text(f"{database}\n{counted} {transactions}")
    for _ in range(2):
        assert clean(sessions, settings, storage) == Cleaned()
    note.unlink()
    assert clean(sessions, settings, storage) == Cleaned(orphans=1)


def test_the_note_of_an_earlier_version_is_read(
    sessions: Sessions, settings: Settings, storage: LocalStorage, make: Makers
) -> None:
    ended(sessions, make, storage, days_ago=0)
    clean(sessions, settings, storage)
    note = settings.storage_dir / "database"
    note.write_text(note.read_text().partition("\n")[0])
    gone = storage.put(job_folder("job_gone"), [b"x"])
    age(storage.path(job_folder("job_gone"), gone.sha256))
    assert clean(sessions, settings, storage) == Cleaned(orphans=1)


def test_half_written_files_and_directories_of_killed_workers_go(
    sessions: Sessions, settings: Settings, storage: LocalStorage, make: Makers
) -> None:
    incoming = settings.storage_dir / "incoming"
    (incoming / "doomed" / "content").mkdir(parents=True)
    for name in ("old", "young"):
        (incoming / name).write_bytes(b"half")
    age(incoming / "old")
    age(incoming / "doomed")
    with session_scope(sessions) as session:
        held, done = (jobs.create_job(session, make.job()).job.id for _ in range(2))
        claimed = claims.claim_next(session, "worker", 60)
        assert claimed is not None
        assert claimed.id == held
        steering.request_cancel(session, done)
    for name in (f"{held}.abc", f"{done}.abc", "job_deleted.abc"):
        (settings.work_dir / name / "checkpoint").mkdir(parents=True)
    assert clean(sessions, settings, storage) == Cleaned(unfinished=2, workspaces=2)
    assert [path.name for path in incoming.iterdir()] == ["young"]
    assert [path.name for path in settings.work_dir.iterdir()] == [f"{held}.abc"]


@pytest.mark.parametrize("kind", ["jobs", "uploads"])
def test_what_cannot_be_removed_keeps_nothing_else_from_being(
    sessions: Sessions, settings: Settings, storage: LocalStorage, make: Makers, kind: str
) -> None:
    kept = ended(sessions, make, storage, days_ago=0)
    odd = settings.storage_dir / kind / "aaa_no_directory"
    odd.parent.mkdir(exist_ok=True)
    odd.touch()
    for folder in (job_folder("job_gone"), upload_folder("upl_gone")):
        age(storage.path(folder, storage.put(folder, [b"x"]).sha256))
    (settings.work_dir / "job_deleted.abc").mkdir(parents=True)
    cleaned = clean(sessions, settings, storage)
    assert (cleaned.orphans, cleaned.workspaces) == (2, 1)
    assert files(settings) - {kind} == {job_folder(kept)}


def test_a_step_that_fails_is_told_and_the_others_are_done(
    sessions: Sessions, settings: Settings, storage: LocalStorage, make: Makers
) -> None:
    settings.spool_dir.parent.mkdir(parents=True, exist_ok=True)
    settings.spool_dir.write_text("no directory")
    (settings.work_dir / "job_deleted.abc").mkdir(parents=True)
    assert clean(sessions, settings, storage) == Cleaned(workspaces=1, failed=1)


def test_what_was_used_longest_ago_leaves_the_cache_first_and_links_stay(
    sessions: Sessions, settings: Settings, storage: LocalStorage, tmp_path: Path
) -> None:
    cache = ContentCache(settings.cache_dir)
    for name in "abc":
        cache.add(name, "v1", [name.encode() * 100], tmp_path / name)
        age(tmp_path / name, LONG_AGO + ord(name))
    used = cache.find("a")
    assert used is not None
    assert cache.link(used, tmp_path / "again")
    limited = settings.model_copy(update={"cache_max_bytes": 200})
    assert clean(sessions, limited, storage) == Cleaned(cache_bytes=100)
    assert [cache.find(name) is not None for name in "abc"] == [True, False, True]
    assert len(list((settings.cache_dir / "seen").iterdir())) == 2
    assert (tmp_path / "b").read_bytes() == b"b" * 100
    assert clean(sessions, limited, storage) == Cleaned()


STATES = st.lists(
    st.tuples(st.sampled_from(["queued", "held", "paused", "cancelled", "succeeded"]), st.floats(0, 20)), max_size=6
)


@pytest.mark.slow
@law(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=STATES, days=st.floats(1, 20))
def test_whatever_there_is_and_however_many_clean_live_jobs_lose_nothing(
    sessions: Sessions, settings: Settings, storage: LocalStorage, make: Makers, wanted, days: float
) -> None:
    with session_scope(sessions) as session:
        for job in session.scalars(select(Job)):
            session.delete(job)
    made: dict[str, tuple[str, float]] = {}
    for state, ago in wanted:
        with session_scope(sessions) as session:
            job = jobs.create_job(session, make.job()).job
            storage.put(job_folder(job.id), [job.id.encode()])
            if state == "held":
                claimed = claims.claim_next(session, "worker", 60)
                assert claimed is not None
                job = claimed
            if state == "paused":
                steering.request_pause(session, job.id)
            if state in ("cancelled", "succeeded"):
                steering.request_cancel(session, job.id)
                backdate(session, job.id, ago)
        made[job.id] = (state, ago)
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(lambda _: clean(sessions, keeping(settings, job=days, event=days), storage), range(3)))
    clean(sessions, keeping(settings, job=days), storage)
    with session_scope(sessions) as session:
        left = {job.id: job for job in session.scalars(select(Job))}
    for job_id, (state, ago) in made.items():
        is_over = state in ("cancelled", "succeeded")
        if job_id in left:
            assert (left[job_id].state in TERMINAL) is is_over
            assert job_folder(job_id) in files(settings)
        else:
            assert is_over
            assert ago >= days
            assert job_folder(job_id) not in files(settings)
    kept = [
        job_id for job_id, (state, ago) in made.items() if state in ("queued", "held", "paused") or ago < days - 0.01
    ]
    assert left.keys() >= set(kept)
