"""A full cache opens no door: who may not read a source hears the same whether another has fetched from it or nobody has."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from store.tables.files import Upload
from tests.loopback import Loopback, Site
from tests.worker.fetching.conftest import LOOPBACK
from tests.worker.fetching.test_hub import OWNER, hub
from tests.worker.fetching.test_s3 import Bucket, bucket
from tests.worker.fetching.test_s3 import server as store
from worker.fetching.errors import FetchError
from worker.fetching.fetcher import Fetcher
from worker.fetching.policy import FetchPolicy

__all__ = ["bucket", "hub", "store"]

MakeFetcher = Callable[..., Fetcher]


@dataclass(frozen=True)
class Caller:
    """Who asks: what the service allows them and which uploads are theirs; ``prepare`` lets the source know them."""

    policy: FetchPolicy = LOOPBACK
    uploads: tuple[Upload, ...] = ()
    prepare: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Door:
    """A data file or a checkpoint that one may read and the others may not."""

    uri: str
    insider: Caller
    outsiders: tuple[Caller, ...]

    @property
    def is_checkpoint(self) -> bool:
        return "." not in self.uri.rpartition("/")[2] and "upload:" not in self.uri


def gated(hub: Loopback, uri: str) -> Door:
    policy = replace(LOOPBACK, hub_endpoint=hub.url, grants=frozenset({"hf://*"}))
    insider, *outsiders = [Caller(replace(policy, hub_token=token)) for token in (OWNER, "hf_strangers", None)]
    return Door(uri, insider, tuple(outsiders))


@pytest.fixture
def hub_model_door(hub: Loopback) -> Door:
    return gated(hub, "hf://org/gated")


@pytest.fixture
def hub_data_door(hub: Loopback) -> Door:
    return gated(hub, "hf://datasets/org/gated/data/dev.csv")


@pytest.fixture
def web_door(server: Loopback, site: Site) -> Door:
    site.files["/dev.csv"] = b"rows"
    insider = Caller(prepare=site.statuses.clear)
    return Door(f"{server.url}/dev.csv", insider, (Caller(prepare=lambda: site.statuses.update({"/dev.csv": 403})),))


@pytest.fixture
def store_door(bucket: Bucket, store: Loopback) -> Door:
    insider = Caller(prepare=bucket.closed.clear)
    return Door("s3://bucket/dev.csv", insider, (Caller(prepare=lambda: bucket.closed.add("bucket")),))


@pytest.fixture
def local_door(tmp_path: Path) -> Door:
    file = tmp_path / "open" / "dev.csv"
    file.parent.mkdir()
    file.write_bytes(b"rows")
    return Door(file.as_uri(), Caller(replace(LOOPBACK, file_roots=(file.parent,))), (Caller(),))


@pytest.fixture
def upload_door(upload: Callable[[str, bytes], Upload]) -> Door:
    return Door("upload:upl_1", Caller(uploads=(upload("dev.csv", b"rows"),)), (Caller(),))


@pytest.mark.parametrize(
    "name", ["hub_model_door", "hub_data_door", "web_door", "store_door", "local_door", "upload_door"]
)
def test_what_one_has_fetched_is_not_given_to_another(
    request: pytest.FixtureRequest, make_fetcher: MakeFetcher, tmp_path: Path, name: str
) -> None:
    door: Door = request.getfixturevalue(name)

    def fetch(caller: Caller, into: str) -> Path:
        caller.prepare()
        fetcher = make_fetcher(caller.policy, uploads=caller.uploads)
        return (fetcher.checkpoint if door.is_checkpoint else fetcher.data)(door.uri, tmp_path / into).path

    def refusals(into: str) -> list[str]:
        said = []
        for number, outsider in enumerate(door.outsiders):
            with pytest.raises(FetchError) as caught:
                fetch(outsider, f"{into}{number}")
            said.append(f"{type(caught.value).__name__}: {caught.value}")
        return said

    before = refusals("before")
    first = fetch(door.insider, "first")
    assert refusals("after") == before
    second = fetch(door.insider, "second")
    pairs = (
        [(one, second / one.relative_to(first)) for one in first.rglob("*.*")] if first.is_dir() else [(first, second)]
    )
    assert pairs
    assert all(one.samefile(other) for one, other in pairs), "it was not given from the cache"
