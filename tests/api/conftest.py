"""A running app on a database of its own, with two teams, and makers of the jobs that tests look at."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from api.main import create_app
from store.repositories.keys import create_key
from store.repositories.teams import create_team
from store.session import Sessions, session_scope
from store.settings import Settings


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
        return Crew(team.id, create_key(session, team.id, "test").text)


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
        event_poll_seconds=0.02,
        event_heartbeat_seconds=0.1,
        wake_timeout_seconds=1.0,
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
