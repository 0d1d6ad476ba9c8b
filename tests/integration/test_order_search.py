"""A search of orders from the post to the download: the real API, and a worker that is replaced in the middle."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from api.main import create_app
from axformer.methods.axformer.orders import SEARCHED_ORDERS
from store.repositories.keys import create_key
from store.session import Sessions, session_scope
from store.settings import Settings
from store.states import TERMINAL
from store.tables.teams import Team
from tests.tiny_models import tiny_rows, write_rows
from tests.worker.conftest import LONG_PASS, Open, opened
from tests.worker.unconfined import Unconfined
from worker.base.context import claim_job, open_context
from worker.job.runner import run_job
from worker.sandbox.sandboxes import Sandboxes

__all__ = ["opened"]

JOB_SECONDS = 400.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def settings(database_url: str, broker_url: str, tmp_path: Path, opened: Open) -> Settings:
    return Settings(
        database_url=database_url,
        broker_url=broker_url,
        var_dir=tmp_path / "var",
        file_roots=(opened.root, tmp_path),
        device="cpu",
        heartbeat_seconds=0.05,
        trial_batch_seconds=0.05,
    )


@pytest.fixture
def api(settings: Settings, sessions: Sessions, team: Team) -> Iterator[TestClient]:
    """A client with a key of the team."""
    with session_scope(sessions) as session:
        key = create_key(session, team.id, "test").text
    with TestClient(create_app(settings)) as client:
        client.headers["Authorization"] = f"Bearer {key}"
        yield client


def work(settings: Settings, over: threading.Event) -> None:
    """What a worker does, without the broker: take the next job and run it, until it is over."""
    with Sandboxes(settings, Unconfined) as sandboxes, open_context(settings, sandboxes) as context:
        while not over.is_set():
            job = claim_job(context)
            if job is None:
                over.wait(0.05)
            else:
                run_job(context, job, over)


def test_a_search_is_watched_and_handed_out(api: TestClient, settings: Settings, opened: Open, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.jsonl", tiny_rows(80))
    body = {
        "name": "orders",
        "checkpoint": {"uri": opened.uri("checkpoint")},
        "validation": {"uri": f"file://{data}"},
        "config": LONG_PASS | {"order": "search"},
    }
    path = api.post("/v1/jobs", json=body).headers["Location"]
    seen: list[dict[str, Any]] = []
    with working(settings):
        watch(api, path, seen, lambda job: job["progress"] is not None and job["progress"]["pass_number"] == 3)
    stopped = api.get(path).json()
    assert (stopped["state"], stopped["attempt"]) == ("queued", 0)
    with working(settings):
        watch(api, path, seen, lambda job: job["state"] in TERMINAL)

    job = seen[-1]
    assert (job["state"], job["error"], job["kind"]) == ("succeeded", None, "pass")
    progress = [view["progress"] for view in seen if view["progress"]]
    done = [one["done"] for one in progress]
    assert done == sorted(done)
    assert len(set(done)) > len(SEARCHED_ORDERS)
    assert {one["passes"] for one in progress} == {6}
    running = [(one["pass_number"], one["order"]) for one in progress]
    assert running == sorted(running, key=lambda one: one[0])
    assert all(order == SEARCHED_ORDERS[number - 1] for number, order in running)
    assert {view["state"] for view in seen} >= {"running", "succeeded"}

    orders = job["report"]["orders"]
    (kept,) = [number for number, one in enumerate(orders, 1) if one["kept"]]
    trace = trace_of(api, path)
    assert trace == api.get(f"{path}/artifacts/trace.jsonl").text
    assert trace == trace_of(api, path, kept)
    lengths = [len(trace_of(api, path, number).splitlines()) for number in range(1, 8)]
    assert lengths == [*(one["trials"] for one in orders), 0]
    plan = api.get(f"{path}/artifacts/plan.json").json()
    assert plan["config"]["order"] == SEARCHED_ORDERS[kept - 1]
    report = api.get(f"{path}/artifacts/report.json").json()
    assert (report["orders"], report["trials"]) == (orders, len(trace.splitlines()))
    assert api.get("/v1/jobs").json()["data"] == [job]


@contextmanager
def working(settings: Settings) -> Iterator[None]:
    """A worker that gives back at the end what it has."""
    over = threading.Event()
    worker = threading.Thread(target=work, args=(settings, over))
    worker.start()
    try:
        yield
    finally:
        over.set()
        worker.join()


def watch(api: TestClient, path: str, seen: list[dict[str, Any]], until: Callable[[dict[str, Any]], bool]) -> None:
    """Add how the job is shown, again and again, until it is as wanted."""
    deadline = time.monotonic() + JOB_SECONDS
    while not seen or not until(seen[-1]):
        assert time.monotonic() < deadline, seen[-1]
        seen.append(api.get(path).json())
        time.sleep(0.02)


def trace_of(api: TestClient, path: str, pass_number: int | None = None) -> str:
    params = {} if pass_number is None else {"pass": pass_number}
    return api.get(f"{path}/trace", params=params, headers={"Accept": "application/x-ndjson"}).text
