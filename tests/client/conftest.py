"""Clients of a real API behind a real server, straight and through a proxy that goes wrong."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from axformer.client import Client, Patience
from tests.api.conftest import Crew, Stage, app, crew, file_root, live, rivals, settings, stage, trial
from tests.client.unreliable import Unreliable, before

__all__ = ["app", "crew", "file_root", "live", "rivals", "settings", "stage"]

QUICK = Patience(attempts=8, first_wait=0.005, longest_wait=2.0, outage=120.0)
"""Waits that do not keep a test waiting, and as many attempts as faults of a test."""
FILES = {
    "model/config.json": b"{}",
    "model/model.safetensors": bytes(range(256)) * 4000,
    "trace.jsonl": b"",
    "artifact.tar.gz": b"all of them",
}


@pytest.fixture(autouse=True)
def _nobody_s_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """No address, key, login or proxy of whoever runs the tests."""
    for name in (
        "AXFORMER_URL",
        "AXFORMER_API_KEY",
        "AXFORMER_HUB_TOKEN",
        "AXFORMER_DELIVER_TOKEN",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "all_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run where nothing lies, and write lines that are wide enough for their tables."""
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def api(live: str, crew: Crew) -> Iterator[Client]:
    """A client of the crew."""
    with Client(live, crew.key, patience=QUICK) as client:
        yield client


@pytest.fixture
def _logged_in(live: str, crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AXFORMER_URL", live)
    monkeypatch.setenv("AXFORMER_API_KEY", crew.key)


@pytest.fixture
def proxy(live: str) -> Iterator[Unreliable]:
    """What stands between the server and a client that must be patient."""
    with before(live) as made:
        yield made


@pytest.fixture
def patient(proxy: Unreliable, crew: Crew) -> Iterator[Client]:
    """A client of the crew that sees the server through the proxy."""
    with Client(proxy.url, crew.key, patience=QUICK) as client:
        yield client


@pytest.fixture
def job() -> dict[str, str]:
    """The least that a job needs."""
    return {"checkpoint": "hf://acme/bert", "validation": "s3://acme/dev.csv"}


@contextmanager
def beside(work: Callable[[], Any]) -> Iterator[None]:
    """Do some work in a thread beside the block; what it raises is raised at the end."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        yield
        done.result()


def play_worker(stage: Stage, job_id: str, go_on: threading.Event | None = None) -> None:
    """Take the one queued job to its end as a worker does: three trials before ``go_on``, two and the files after it."""
    stage.begin(job_id, [trial(seq) for seq in range(3)])
    if go_on is not None:
        go_on.wait()
    stage.add_trials(job_id, [trial(3), trial(4)])
    stage.succeed(job_id, FILES)
