"""The examples of the OpenAPI document are what the service answers about one real job.

Where an answer has changed on purpose, ``WRITE_EXAMPLES=1 pytest tests/api/test_examples.py`` writes them anew.
"""

import json
import os
import tarfile
import threading
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from api.main import create_app
from api.openapi import EXAMPLES, EXAMPLES_FILE
from store.settings import Settings
from store.system.processes import free_port
from tests.tiny_models import save_tiny_checkpoint, tiny_rows
from tests.worker.unconfined import Unconfined
from worker.base.context import claim_job, open_context
from worker.job.runner import run_job
from worker.sandbox.sandboxes import Sandboxes

pytestmark = pytest.mark.slow
MOST = 2
"""Most entries of a list that are shown."""
NAME = "reviews, nightly"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"upload_max_bytes": 2**24, "device": "cpu"})


def uploaded(api: TestClient, name: str, content: bytes) -> dict[str, Any]:
    answer = api.post("/v1/uploads", files={"file": (name, content)})
    assert answer.status_code == 201, answer.text
    return answer.json()


def packed(directory: Path) -> bytes:
    memory = BytesIO()
    with tarfile.open(fileobj=memory, mode="w") as archive:
        archive.add(directory, arcname=".")
    return memory.getvalue()


def rows(count: int, seed: int) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in tiny_rows(count, seed=seed)).encode()


def run(settings: Settings) -> None:
    """Run the next job in the queue."""
    with Sandboxes(settings, Unconfined) as sandboxes, open_context(settings, sandboxes) as context:
        job = claim_job(context)
        assert job is not None
        run_job(context, job, threading.Event())


def of_keys(api: TestClient) -> dict[str, Any]:
    """Answers about keys and secrets, whose text is replaced."""
    secret = api.post("/v1/webhook-secrets").json() | {"secret": "whsec_" + 43 * "A" + "="}
    key = api.post("/v1/keys", json={"name": "nightly pipeline", "scopes": ["write"]}).json()
    rotated = api.post(f"/v1/keys/{key['id']}/rotate").json()
    for made in (key, rotated):
        made["key"] = f"axk_{made['id']}_{32 * '0d'}"
    return {
        "webhook_secret": secret,
        "webhook_secrets": api.get("/v1/webhook-secrets").json(),
        "key": key,
        "key_rotated": rotated,
        "keys": api.get("/v1/keys").json(),
        "me": api.get("/v1/me").json(),
    }


def of_a_job(api: TestClient, settings: Settings) -> dict[str, Any]:
    """Answers about a job that is posted, waits, runs, and is cancelled too late."""
    checkpoint = save_tiny_checkpoint(settings.var_dir / "checkpoint")
    upload = uploaded(api, "dev.jsonl", rows(40, seed=0))
    body = {
        "name": NAME,
        "checkpoint": {"uri": uploaded(api, "checkpoint.tar", packed(checkpoint))["uri"]},
        "validation": {"uri": upload["uri"]},
        "test": {"uri": uploaded(api, "test.jsonl", rows(20, seed=1))["uri"]},
        "unlabelled": {"uri": uploaded(api, "traffic.jsonl", rows(200, seed=2))["uri"]},
        "at_most": 20,
        "preset": "paper",
        "config": {"refine_margin": 1.2, "accept_poor_model": True},
        "forms": ["compact"],
        "labels": {"project": "reviews"},
        "webhook": {"url": "https://ci.acme.example/axformer"},
    }
    first = api.post("/v1/jobs", json=body | {"name": "first"}).json()["links"]
    posted = api.post("/v1/jobs", json=body)
    assert posted.status_code == 202, posted.text
    queue = api.get("/v1/queue").json()
    api.post(first["cancel"])
    run(settings)
    at = posted.json()["links"]
    job = api.get(at["self"]).json()
    assert job["state"] == "succeeded", job
    path = api.get(at["path"]).json()
    deliveries = api.get(at["deliveries"]).json()
    message = deliveries["data"][0]["id"]
    needed = api.get(at["needed"]).json()
    first = needed["data"][0]
    labelled = api.post(at["labels"], json={"data": [{"id": first["id"], "label": 0}]})
    assert labelled.status_code == 200, labelled.text
    waiting = api.post("/v1/jobs", json=body | {"name": "again"}).json()["id"]
    return {
        "job": job,
        "jobs": api.get("/v1/jobs", params={"limit": 1}).json(),
        "trace": api.get(at["trace"], params={"limit": MOST}).json(),
        "path": path,
        "needed": needed,
        "labelled": labelled.json(),
        "plan": api.get(f"{at['path']}/{path['kept']}/plan").json(),
        "events": api.get(at["events"]).json(),
        "artifacts": api.get(at["artifacts"]).json(),
        "upload": upload,
        "queue": queue,
        "bulk": api.post("/v1/jobs/cancel", json={"ids": [waiting, job["id"]]}).json(),
        "deliveries": deliveries,
        "delivery": api.post(f"{at['deliveries']}/{message}/redeliver").json(),
    }


def of_the_service(api: TestClient, settings: Settings) -> dict[str, Any]:
    nowhere = SecretStr(f"redis://127.0.0.1:{free_port()}/0")
    with TestClient(create_app(settings.model_copy(update={"broker_url": nowhere}))) as alone:
        not_ready = alone.get("/readyz").json()
    return {
        "knobs": api.get("/v1/knobs").json(),
        "health": api.get("/healthz").json(),
        "ready": api.get("/readyz").json(),
        "not_ready": not_ready,
    }


def shortened(value: Any) -> Any:
    """A value whose lists have only their first entries."""
    if isinstance(value, Mapping):
        return {name: shortened(inner) for name, inner in value.items()}
    return [shortened(inner) for inner in value[:MOST]] if isinstance(value, list) else value


def differences(found: Any, shown: Any, at: str = "") -> Iterator[str]:
    """Where names of fields or kinds of values differ. Null is of every kind: a busy machine cannot measure every time."""
    if isinstance(found, Mapping) and isinstance(shown, Mapping):
        yield from (f"{at}/{name}" for name in found.keys() ^ shown.keys())
        for name in found.keys() & shown.keys():
            yield from differences(found[name], shown[name], f"{at}/{name}")
    elif isinstance(found, list) and isinstance(shown, list):
        if bool(found) != bool(shown):
            yield at
        for one, other in zip(found[:1], shown[:1], strict=False):
            yield from differences(one, other, f"{at}/0")
    elif None not in (found, shown) and kind(found) != kind(shown):
        yield at


def kind(value: Any) -> str:
    """The kind of a value in JSON."""
    return "number" if type(value) in (int, float) else type(value).__name__


def test_the_examples_are_what_the_service_answers(api: TestClient, settings: Settings) -> None:
    found = of_keys(api) | of_a_job(api, settings) | of_the_service(api, settings)
    found["audit"] = api.get("/v1/audit").json()
    found = dict(sorted(shortened(found).items()))
    if os.environ.get("WRITE_EXAMPLES"):
        EXAMPLES_FILE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return
    assert list(differences(found, EXAMPLES)) == []
