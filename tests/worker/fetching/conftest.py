from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from store.storage.storage import LocalStorage, upload_folder
from store.tables.files import Upload
from tests.loopback import Loopback, Site
from worker.fetching.cache import ContentCache
from worker.fetching.fetcher import Fetcher
from worker.fetching.policy import FetchPolicy
from worker.fetching.sources import open_source
from worker.fetching.transfer import Transfer

LOOPBACK = FetchPolicy(plain_http=True, private_hosts=frozenset({"127.0.0.1"}), backoff_seconds=0.01, read_seconds=5.0)

CHECKPOINT = {
    "config.json": b'{"model_type": "bert"}',
    "model.safetensors": b"weights" * 1000,
    "tokenizer.json": b"{}",
    "vocab.txt": b"[PAD]\n",
    "modules.json": b"[]",
    "1_Pooling/config.json": b'{"pooling_mode_mean_tokens": true}',
    "2_Dense/config.json": b'{"in_features": 4}',
    "2_Dense/model.safetensors": b"layer",
}
STRANGERS = {"pytorch_model.bin": b"pickle", "modeling_evil.py": b"import os", "README.md": b"# model"}
STRANGERS |= {
    "1_Pooling/modeling_evil.py": b"import os",
    "2_Normalize/config.json": b"{}",
    "2_Dense/pytorch_model.bin": b"pickle",
    "9_Dense/model.safetensors": b"w",
}


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def server(site: Site) -> Iterator[Loopback]:
    with Loopback(site) as running:
        yield running


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "storage")


@pytest.fixture
def upload(storage: LocalStorage) -> Callable[[str, bytes], Upload]:
    def make(filename: str, content: bytes) -> Upload:
        stored = storage.put(upload_folder("upl_1"), [content])
        return Upload(id="upl_1", team_id="team_1", filename=filename, sha256=stored.sha256, bytes=stored.bytes)

    return make


@pytest.fixture
def make_fetcher(tmp_path: Path, storage: LocalStorage) -> Callable[..., Fetcher]:
    """A fetcher with a policy, a ``check_stop`` and the uploads that exist."""

    def make(
        policy: FetchPolicy = LOOPBACK, check_stop: Callable[[], None] = lambda: None, uploads: tuple[Upload, ...] = ()
    ) -> Fetcher:
        known = {upload.id: upload for upload in uploads}
        return Fetcher(
            Transfer(ContentCache(tmp_path / "cache"), policy, check_stop),
            lambda reference: open_source(reference, policy, known.get, storage),
        )

    return make


def contents(directory: Path) -> dict[str, bytes]:
    """Every file in a directory by its name there."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}
