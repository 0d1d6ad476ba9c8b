"""Downloads that the service sends to the store itself: whole, verified, and without the key."""

from pathlib import Path

import pytest

from axformer.client import Client
from store.settings import Settings
from tests.api.conftest import Stage
from tests.client.conftest import FILES
from tests.object_store import Environ, Fault, ObjectStore, times


@pytest.fixture
def settings(settings: Settings, object_store: ObjectStore) -> Settings:
    place = f"s3://{object_store.new_bucket()}/files"
    return settings.model_copy(update={"storage": place, "object_store": object_store.settings(address_seconds=60)})


def test_files_come_from_the_store_without_the_key(
    api: Client, stage: Stage, object_store: ObjectStore, tmp_path: Path
) -> None:
    seen: list[Environ] = []

    def watch(environ: Environ) -> None:
        if environ["REQUEST_METHOD"] == "GET":
            seen.append(dict(environ))

    job_id = stage.succeeded(FILES)
    with object_store.failing(watch):
        paths = api.download(job_id, tmp_path / "result")
    assert {path.relative_to(tmp_path / "result").as_posix(): path.read_bytes() for path in paths} == {
        name: content for name, content in FILES.items() if name != "artifact.tar.gz"
    }
    assert len(seen) == len(paths)
    assert not any("HTTP_AUTHORIZATION" in environ for environ in seen)


def test_what_broke_off_there_goes_on_through_the_service(
    api: Client, stage: Stage, object_store: ObjectStore, tmp_path: Path
) -> None:
    job_id = stage.succeeded(FILES)
    with object_store.failing(times(1, Fault(breaks_after=1000), "GET")):
        api.download(job_id, tmp_path / "result", ["model/model.safetensors"])
    assert (tmp_path / "result" / "model" / "model.safetensors").read_bytes() == FILES["model/model.safetensors"]
