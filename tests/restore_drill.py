"""A backup and restore drill on a server of its own: dump, lose, restore, and nothing is gone.

python -m tests.restore_drill
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from pydantic import SecretStr
from sqlalchemy.engine import make_url

from store.check import differences
from store.embedded.postgres import create_database, programs, start_postgres
from store.embedded.server import running
from store.ids import new_id
from store.migrate import migrate
from store.repositories import claims, jobs, leases
from store.repositories.files import add_upload
from store.repositories.teams import create_team
from store.session import Sessions, make_engine, make_sessions, session_scope
from store.settings import Settings
from store.states import JobState
from store.storage.storage import LocalStorage, job_folder, upload_folder
from store.tables.files import Artifact, Upload
from tests.store.makers import Makers
from worker.janitor import clean

DATABASE = "axformer_test_drill"
LONG_AGO = time.time() - 10 * 86_400


class DrillError(Exception):
    """Something was lost, or was not noticed."""


@dataclass(frozen=True)
class Drill:
    """A service without processes: a database and a storage, to work on, to back up and to lose."""

    server_url: str
    directory: Path

    @property
    def url(self) -> str:
        return make_url(self.server_url).set(database=DATABASE).render_as_string(hide_password=False)

    @property
    def settings(self) -> Settings:
        return Settings(database_url=SecretStr(self.url), var_dir=self.directory / "var")

    @property
    def storage(self) -> LocalStorage:
        return LocalStorage(self.settings.storage_dir)

    @contextmanager
    def sessions(self) -> Iterator[Sessions]:
        engine = make_engine(self.settings)
        yield make_sessions(engine)
        engine.dispose()

    def job(self, team: str) -> None:
        """A job that has succeeded with a file, and an upload; both were written long ago."""
        with self.sessions() as sessions, session_scope(sessions) as session:
            job = jobs.create_job(session, Makers(team).job()).job
            claimed = claims.claim_next(session, "worker", 60)
            assert claimed is not None
            for state in (JobState.VALIDATING, JobState.RUNNING, JobState.PACKAGING):
                leases.set_state(session, job.id, claimed.fence, state)
            made = self.storage.put(job_folder(job.id), [job.id.encode()])
            file = Artifact(
                job_id=job.id, name="plan.json", sha256=made.sha256, bytes=made.bytes, media_type="text/plain"
            )
            leases.finish_succeeded(session, job.id, claimed.fence, {"removed": []}, [file])
            upload = new_id("upl")
            sent = self.storage.put(upload_folder(upload), [upload.encode()])
            add_upload(session, Upload(id=upload, team_id=team, filename="a", sha256=sent.sha256, bytes=sent.bytes))
        for folder, sha256 in ((job_folder(job.id), made.sha256), (upload_folder(upload), sent.sha256)):
            os.utime(self.storage.path(folder, sha256), (LONG_AGO, LONG_AGO))

    def cleaned(self) -> int:
        """What the janitor of a starting worker takes for orphans."""
        with self.sessions() as sessions:
            return clean(sessions, self.settings, self.storage).orphans

    def found(self) -> list[str]:
        """What ``store.check`` says."""
        with self.sessions() as sessions:
            return sorted(what for what, _ in differences(sessions, self.storage))

    def dump(self, name: str) -> Path:
        """Back the database up."""
        file = self.directory / name
        _program("pg_dump", "--format=custom", f"--file={file}", self.url)
        return file

    def lose(self) -> None:
        """Drop the database, and make an empty one of its name."""
        with psycopg.connect(self.server_url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
        create_database(self.server_url, DATABASE)

    def restore(self, dump: Path) -> None:
        """Put a backup back in place."""
        _program("pg_restore", "--clean", "--if-exists", f"--dbname={self.url}", str(dump))


def _program(name: str, *arguments: str) -> None:
    subprocess.run([programs() / name, *arguments], check=True)


def _expect(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise DrillError(f"{what}: {found} instead of {expected}")


def drill(server_url: str, directory: Path) -> None:
    """Carry the drill out.

    Raises:
        DrillError: something was lost, or was not noticed.
    """
    create_database(server_url, DATABASE)
    service = Drill(server_url, directory)
    migrate(service.settings)
    with service.sessions() as sessions, session_scope(sessions) as session:
        team = create_team(session, "crew").id
    service.job(team)
    _expect("orphans of a sound service", service.cleaned(), 0)
    early = service.dump("early.dump")
    service.job(team)
    _expect("orphans of a sound service", service.cleaned(), 0)
    late = service.dump("late.dump")

    service.restore(early)  # the wrong one, in place: the server is the same
    _expect("orphans after an older backup in place", service.cleaned(), 0)
    _expect("orphans at the next cleaning", service.cleaned(), 0)
    _expect("differences to an older backup", service.found(), ["without_row", "without_row"])
    service.restore(late)
    _expect("differences to the last backup", service.found(), [])

    service.lose()
    service.restore(early)
    _expect("orphans after an older backup in another database", service.cleaned(), 0)
    service.lose()
    service.restore(late)
    _expect("orphans after the last backup in another database", service.cleaned(), 0)
    _expect("differences to the last backup", service.found(), [])
    (service.settings.storage_dir / "database").unlink()
    service.job(team)
    _expect("orphans of the restored service", service.cleaned(), 0)
    _expect("differences of the restored service", service.found(), [])


def main() -> int:
    """The command."""
    with tempfile.TemporaryDirectory(prefix="axformer-drill-") as made:
        directory = Path(made)
        with running(start_postgres(directory / "postgres", directory / "postgres.log")) as server:
            drill(server.url, directory)
    sys.stdout.write("dumped, lost and restored: nothing is gone\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
