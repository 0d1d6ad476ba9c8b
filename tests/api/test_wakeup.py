"""Workers are told after the commit, and a silent broker delays no one."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery
from pydantic import SecretStr
from starlette.testclient import TestClient

from api.main import create_app
from api.wakeup import WAKE_TASK
from store.repositories.claims import is_anything_claimable
from store.repositories.line import Abilities
from store.session import session_scope
from store.system.processes import free_port
from worker.base.context import KNOBS


@pytest.fixture
def queue(settings) -> Iterator:
    """What lies in the broker's queue: a function that takes the next message's headers, or gives null."""
    with Celery(broker=settings.broker_url.get_secret_value()).connection_for_read() as connection:
        waiting = connection.SimpleQueue(settings.celery_queue)
        waiting.clear()

        def take() -> dict | None:
            try:
                message = waiting.get(block=False)
            except waiting.Empty:
                return None
            message.ack()
            return dict(message.headers) | {"body": message.payload}

        yield take
        waiting.close()


def test_a_posted_job_wakes_a_worker_once(api, body, queue):
    for _ in range(2):
        api.post("/v1/jobs", json=body, headers={"Idempotency-Key": "once"})
    message = queue()
    assert message["task"] == WAKE_TASK
    assert message["body"][:2] == [[], {}]  # neither arguments nor a job: PostgreSQL knows what is next
    assert queue() is None


def test_a_retried_job_wakes_a_worker(api, stage, queue):
    api.post(f"/v1/jobs/{stage.failed()}/retry")
    assert queue()["task"] == WAKE_TASK


def test_a_refused_job_wakes_nobody(api, body, queue):
    api.post("/v1/jobs", json=body | {"validation": {"uri": "upload:upl_" + "0" * 32}})
    assert queue() is None


def test_the_workers_task_has_the_name_that_is_sent():
    source = (Path(__file__).parents[2] / "worker" / "main" / "tasks.py").read_text()
    assert f'"{WAKE_TASK}"' in source


def test_without_a_broker_a_job_is_accepted_and_waits_in_the_database(settings, crew, sessions, body):
    dead = settings.model_copy(update={"broker_url": SecretStr(f"redis://127.0.0.1:{free_port()}/0")})
    with TestClient(create_app(dead), headers=crew.headers) as client:
        begun = time.perf_counter()
        answers = [client.post("/v1/jobs", json=body) for _ in range(3)]
        seconds = time.perf_counter() - begun
    assert [answer.status_code for answer in answers] == [202] * 3
    assert seconds < 3 * (settings.wake_timeout_seconds + 2)
    with session_scope(sessions) as session:
        assert is_anything_claimable(session, Abilities(knobs=KNOBS))
