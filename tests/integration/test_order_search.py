"""A search of orders from the post to the download: the real API, and two workers who share its passes."""

import threading
import time
from collections.abc import Iterator
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
from worker.context import claim_job, open_context
from worker.runner import run_job
from worker.sandbox.sandboxes import Sandboxes

__all__ = ["opened"]

WORKERS = 2
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


def seen_to_the_end(api: TestClient, path: str) -> list[dict[str, Any]]:
    """The job as it was shown again and again until it ended."""
    seen, deadline = [], time.monotonic() + JOB_SECONDS
    while not seen or seen[-1]["state"] not in TERMINAL:
        assert time.monotonic() < deadline, seen[-1]
        seen.append(api.get(path).json())
        time.sleep(0.02)
    return seen


def test_two_workers_share_a_search(api: TestClient, settings: Settings, opened: Open, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.jsonl", tiny_rows(80))
    body = {
        "name": "orders",
        "checkpoint": {"uri": opened.uri("checkpoint")},
        "validation": {"uri": f"file://{data}"},
        "config": LONG_PASS | {"order": "search"},
    }
    over = threading.Event()
    workers = [threading.Thread(target=work, args=(settings, over)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    try:
        answer = api.post("/v1/jobs", json=body)
        path = answer.headers["Location"]
        seen = seen_to_the_end(api, path)
    finally:
        over.set()
        for worker in workers:
            worker.join()

    job = seen[-1]
    assert (job["state"], job["error"]) == ("succeeded", None)
    at_once = [sum(one["state"] == "running" for one in view["passes"]) for view in seen]
    assert max(at_once) == WORKERS
    done = [view["progress"]["done"] for view in seen if view["progress"]]
    assert done == sorted(done)
    assert len(set(done)) > len(SEARCHED_ORDERS)
    assert job["progress"]["done"] == job["progress"]["known"] == sum(one["trials"] for one in job["report"]["orders"])
    assert {view["state"] for view in seen} >= {"running", "succeeded"}

    (kept,) = [place for place, one in enumerate(job["report"]["orders"]) if one["kept"]]
    ndjson = {"Accept": "application/x-ndjson"}
    trace = api.get(f"{path}/trace", headers=ndjson).text
    assert trace == api.get(f"{job['passes'][kept]['url']}/trace", headers=ndjson).text
    assert trace == api.get(f"{path}/artifacts/trace.jsonl").text
    plan = api.get(f"{path}/artifacts/plan.json").json()
    assert plan["config"]["order"] == job["passes"][kept]["order"]
    report = api.get(f"{path}/artifacts/report.json").json()
    assert report["orders"] == job["report"]["orders"]
    assert report["trials"] == len(trace.splitlines())
    assert api.get("/v1/jobs").json()["data"] == [job]
