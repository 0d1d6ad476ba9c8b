"""A running app on a database of its own, with two teams, and makers of the jobs that tests look at."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI
from sqlalchemy.engine import make_url
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from api.main import create_app
from axformer.plan.trial import Phase, Trial, Verdict
from axformer.wire.scopes import Scope
from store.repositories import claims, jobs, leases, moves
from store.repositories.keys import create_key
from store.repositories.teams import create_team
from store.session import Sessions, session_scope
from store.setting_groups import RateSettings
from store.settings import Settings
from store.states import JobState
from store.storage.storage import Storage, job_folder, open_storage
from store.tables.files import Artifact
from tests.serving import serving
from tests.specs import with_spec


@dataclass(frozen=True)
class Crew:
    """A team and the header that its key makes."""

    id: str
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


def make_crew(sessions: Sessions, name: str) -> Crew:
    with session_scope(sessions) as session:
        team = create_team(session, name)
        return Crew(team.id, create_key(session, team.id, "test", Scope.ADMIN).text)


@pytest.fixture
def file_root(tmp_path: Path) -> Path:
    """The directory that file:// may point into."""
    root = tmp_path / "open"
    root.mkdir()
    return root


@pytest.fixture
def settings(database_url: str, broker_url: str, tmp_path: Path, file_root: Path) -> Settings:
    """Small limits and short waits."""
    return Settings(
        database_url=database_url,
        broker_url=broker_url,
        var_dir=tmp_path / "var",
        file_roots=(file_root,),
        upload_max_bytes=2**20,
        json_max_bytes=2**16,
        page_limit_default=5,
        page_limit_max=50,
        trace_chunk=7,
        queue_view_seconds=0,
        event_poll_seconds=0.02,
        event_heartbeat_seconds=0.1,
        wake_timeout_seconds=1.0,
        rate=RateSettings(refusals=100_000),  # all tests of a run have one address
    )


@pytest.fixture
def app(settings: Settings) -> FastAPI:
    return create_app(settings)


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    """A client without a key."""
    with TestClient(app, raise_server_exceptions=False) as made:
        yield made


@pytest.fixture
def crew(sessions: Sessions) -> Crew:
    return make_crew(sessions, "crew")


@pytest.fixture
def rivals(sessions: Sessions) -> Crew:
    return make_crew(sessions, "rivals")


@pytest.fixture
def api(client: TestClient, crew: Crew) -> TestClient:
    """A client with the crew's key."""
    client.headers.update(crew.headers)
    return client


@dataclass(frozen=True)
class Stage:
    """Brings jobs where tests need them, as a worker would."""

    sessions: Sessions
    storage: Storage
    team_id: str

    def queued(self, **changes: Any) -> str:
        """A queued job."""
        plain = {"team_id": self.team_id, "name": "job"}
        spec = {"checkpoint": {"uri": "hf://acme/bert"}, "validation": {"uri": "s3://acme/dev.csv"}}
        with session_scope(self.sessions) as session:
            return jobs.create_job(session, jobs.NewJob(**plain | with_spec(changes, **spec))).job.id

    def running(self, trials: Sequence[Trial] = (), progress: Mapping[str, Any] | None = None, **changes: Any) -> str:
        """A running job with a trace; no other job may be queued."""
        job_id = self.queued(**changes)
        self.begin(job_id, trials, progress)
        return job_id

    def begin(self, job_id: str, trials: Sequence[Trial] = (), progress: Mapping[str, Any] | None = None) -> None:
        """Let the one queued job run, with a trace."""
        with session_scope(self.sessions) as session:
            claimed = claims.claim_next(session, "worker-1", 60)
            assert claimed.id == job_id
            for state in (JobState.VALIDATING, JobState.RUNNING):
                leases.set_state(session, job_id, claimed.fence, state)
            leases.add_trials(session, job_id, claimed.fence, trials, progress)

    def add_trials(self, job_id: str, trials: Sequence[Trial], progress: Mapping[str, Any] | None = None) -> None:
        """More trials of a running job."""
        with session_scope(self.sessions) as session:
            fence = self._fence(session, job_id)
            leases.add_trials(session, job_id, fence, trials, progress)

    def succeed(self, job_id: str, files: Mapping[str, bytes], **changes: Any) -> None:
        """End a running job with these files, and a report with some fields changed."""
        artifacts = []
        for name, content in files.items():
            stored = self.storage.put(job_folder(job_id), [content])
            media_type = "application/octet-stream"
            artifacts.append(
                Artifact(job_id=job_id, name=name, sha256=stored.sha256, bytes=stored.bytes, media_type=media_type)
            )
        figures = {"validation": {"loss": 0.4}, "test": None, "parameters": 10, "bytes": 40, "latency_ms": 1.5}
        figures |= {"operations": 900}
        report = {
            "base": figures,
            "pruned": figures,
            "estimated_speedup": 1.0,
            "removed": ["layer.0.ffn"],
            "hard_attention": [0, 1],
            "seconds": 2.5,
            "config": {},
        }
        with session_scope(self.sessions) as session:
            fence = self._fence(session, job_id)
            leases.set_state(session, job_id, fence, JobState.PACKAGING)
            leases.finish_succeeded(session, job_id, fence, report | changes, artifacts)

    def succeeded(self, files: Mapping[str, bytes], trials: Sequence[Trial] = ()) -> str:
        """A job that has succeeded with these files."""
        job_id = self.running(trials)
        self.succeed(job_id, files)
        return job_id

    def failed(self) -> str:
        """A job that has failed."""
        job_id = self.running([trial(0)])
        error = {"code": "invalid_data", "message": "no rows", "param": "validation", "retryable": False}
        with session_scope(self.sessions) as session:
            leases.finish_failed(session, job_id, self._fence(session, job_id), error)
        return job_id

    @staticmethod
    def _fence(session: Session, job_id: str) -> int:
        return moves.lock_job(session, job_id).fence


def trial(seq: int, **changes: Any) -> Trial:
    """The trial with this number."""
    plain: dict[str, Any] = {
        "seq": seq,
        "phase": Phase.BLOCK if seq else Phase.BASE,
        "element": f"layer.{seq}.ffn" if seq else None,
        "loss": 1 / (seq + 3),
        "loss_is_bound": seq % 2 == 1,
        "helped": 7 if seq else None,
        "samples": 10,
        "total": 10,
        "min_loss": 0.1 + 0.2,
        "verdict": Verdict.REJECT if seq else Verdict.BASE,
        "precision": "float32",
        "parameters": 100 * seq,
        "seconds": 0.1 * seq,
    }
    return Trial(**plain | changes)


@pytest.fixture
def stage(sessions: Sessions, settings: Settings, crew: Crew) -> Stage:
    """Brings jobs of the crew where tests need them."""
    return Stage(sessions, open_storage(settings), crew.id)


@pytest.fixture
def make_trial() -> Callable[..., Trial]:
    """Makes trials."""
    return trial


@pytest.fixture
def body() -> dict[str, Any]:
    """The least that a job needs."""
    return {"name": "job", "checkpoint": {"uri": "hf://acme/bert"}, "validation": {"uri": "s3://acme/dev.csv"}}


@pytest.fixture
def live(app: FastAPI) -> Iterator[str]:
    """The address of the app behind a real server, for what a client in the same process cannot see."""
    with serving(app) as url:
        yield url


@pytest.fixture
def outage(postgres_url: str, database_url: str) -> Callable[[], AbstractContextManager[None]]:
    """Makes this test's database unreachable for a while."""
    database = make_url(database_url).database

    @contextmanager
    def cut_off() -> Iterator[None]:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS false")
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [database])
            yield
            connection.execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")

    return cut_off
