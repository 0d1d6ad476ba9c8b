"""The API with its files in a bucket, also one that fails, refuses, is full, or that somebody else writes to."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from store.setting_groups import RateSettings
from store.settings import Settings
from store.storage.bucket import BLOCK_BYTES
from store.storage.storage import Storage, open_storage
from tests.api.conftest import Stage
from tests.object_store import Fault, ObjectStore, always

NAME = "model/model.safetensors"
LARGE = os.urandom(BLOCK_BYTES + 999)


@pytest.fixture
def settings(database_url: str, broker_url: str, tmp_path: Path, object_store: ObjectStore) -> Settings:
    return Settings(
        database_url=database_url,
        broker_url=broker_url,
        var_dir=tmp_path / "var",
        storage=f"s3://{object_store.new_bucket()}/files",
        object_store=object_store.settings(),
        upload_max_bytes=2**25,
        rate=RateSettings(refusals=100_000),
    )


@pytest.fixture
def storage(settings: Settings) -> Storage:
    return open_storage(settings)


@pytest.fixture
def path(stage: Stage) -> str:
    """Where a job's large file is."""
    return f"/v1/jobs/{stage.succeeded({NAME: LARGE, 'plan.json': b'{}'})}/artifacts/{NAME}"


def upload(api: TestClient, content: bytes) -> Any:
    return api.post("/v1/uploads", files={"file": ("dev.csv", content)})


def test_a_file_is_downloaded_whole_and_in_ranges(api: TestClient, path: str) -> None:
    assert api.get(path).content == LARGE
    for first, last in [(0, 9), (BLOCK_BYTES - 2, BLOCK_BYTES + 2), (5, len(LARGE) - 1)]:
        part = api.get(path, headers={"Range": f"bytes={first}-{last}"})
        assert (part.status_code, part.content) == (206, LARGE[first : last + 1])


def test_an_upload_comes_and_goes(api: TestClient, storage: Storage, settings: Settings) -> None:
    sent = upload(api, LARGE)
    assert (sent.status_code, sent.json()["bytes"]) == (201, len(LARGE))
    assert storage.folders("uploads") == [f"uploads/{sent.json()['id']}"]
    assert list(settings.spool_dir.iterdir()) == []
    api.delete(f"/v1/uploads/{sent.json()['id']}")
    assert storage.folders("uploads") == []


def test_a_failing_store_is_a_503_and_nothing_is_noted(
    api: TestClient, path: str, object_store: ObjectStore, storage: Storage
) -> None:
    with object_store.failing(always(Fault(503))):
        for answer in (upload(api, b"x"), api.get(path)):
            assert (answer.status_code, answer.json()["code"]) == (503, "storage_unavailable")
            assert answer.headers["Retry-After"]
    assert storage.folders("uploads") == []
    assert api.get(path).content == LARGE


def test_what_the_owner_reads_of_a_refusal_names_no_bucket(
    api: TestClient, path: str, object_store: ObjectStore
) -> None:
    with object_store.failing(always(Fault(403, "AccessDenied"))):
        answer = api.get(path).text
    assert "bucket" not in answer
    assert "s3:" not in answer


def test_a_full_store_is_a_507(api: TestClient, object_store: ObjectStore) -> None:
    with object_store.failing(always(Fault(507, "InsufficientStorage"))):
        answer = upload(api, b"x")
    assert (answer.status_code, answer.json()["code"]) == (507, "storage_full")


def test_a_job_is_deleted_while_the_store_is_away(
    api: TestClient, path: str, object_store: ObjectStore, storage: Storage
) -> None:
    with object_store.failing(always(Fault(503))):
        assert api.delete(path.partition("/artifacts")[0]).status_code == 204
    assert len(storage.folders("jobs")) == 1  # which the janitor finds


def test_a_file_that_somebody_changed_is_not_delivered(
    api: TestClient, path: str, object_store: ObjectStore, settings: Settings
) -> None:
    assert settings.storage_bucket is not None
    bucket, client = settings.storage_bucket[0], object_store.client
    for entry in client.list_objects_v2(Bucket=bucket)["Contents"]:
        client.put_object(Bucket=bucket, Key=entry["Key"], Body=b"X" * entry["Size"])
    for headers in ({}, {"Range": "bytes=0-9"}):
        answer = api.get(path, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (404, "content_missing")


class TestRedirected:
    """Files that come from the store itself."""

    @pytest.fixture
    def settings(self, settings: Settings, object_store: ObjectStore) -> Settings:
        return settings.model_copy(update={"object_store": object_store.settings(address_seconds=60)})

    def test_a_download_is_sent_to_the_store_and_loses_the_key(
        self, api: TestClient, path: str, object_store: ObjectStore
    ) -> None:
        answer = api.get(path, follow_redirects=False)
        assert answer.status_code == 307
        assert answer.headers["Location"].startswith(object_store.url)
        assert answer.headers["Cache-Control"] == "no-store"

    def test_what_needs_our_headers_comes_from_here(self, api: TestClient, path: str) -> None:
        tag = api.head(path).headers["ETag"]
        assert api.get(path, headers={"If-None-Match": tag}).status_code == 304
        resumed = api.get(path, headers={"Range": "bytes=5-9", "If-Range": tag}, follow_redirects=False)
        assert (resumed.status_code, resumed.content) == (206, LARGE[5:10])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "says"),
    [(Fault(404, "NoSuchBucket"), "is not there"), (Fault(403, "AccessDenied"), "grant s3:GetObject")],
)
def test_the_server_does_not_start_where_its_bucket_refuses(
    settings: Settings, object_store: ObjectStore, fault: Fault, says: str
) -> None:
    environment = os.environ | {
        "DATABASE_URL": settings.database_url.get_secret_value(),
        "AXFORMER_STORAGE": str(settings.storage),
    }
    with object_store.failing(always(fault)):
        ran = subprocess.run(
            [sys.executable, "-m", "api.server", "--port", "0"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert ran.returncode == 1
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr
