"""A job may say which content it means; other content is refused before anything is made of it."""

import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from store.tables.files import Upload
from tests.worker.fetching.conftest import CHECKPOINT
from worker.fetching.errors import ReferenceDiffers
from worker.fetching.fetcher import Fetcher
from worker.fetching.policy import FetchPolicy

OTHER = "0" * 64


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    (made / "model").mkdir(parents=True)
    for name, content in CHECKPOINT.items():
        (made / "model" / name).parent.mkdir(exist_ok=True)
        (made / "model" / name).write_bytes(content)
    (made / "dev.csv").write_bytes(b"text,label\na,0\n")
    return made


@pytest.fixture
def fetcher(root: Path, make_fetcher: Callable[..., Fetcher]) -> Fetcher:
    return make_fetcher(FetchPolicy(file_roots=(root,)))


def test_a_data_file_is_taken_by_its_own_digest_alone(root: Path, fetcher: Fetcher, tmp_path: Path) -> None:
    digest = hashlib.sha256((root / "dev.csv").read_bytes()).hexdigest()
    assert fetcher.data(f"file://{root}/dev.csv", tmp_path / "right", digest).sha256 == digest
    with pytest.raises(ReferenceDiffers, match=f"has the SHA-256 {digest}, and the job says {OTHER}"):
        fetcher.data(f"file://{root}/dev.csv", tmp_path / "wrong", OTHER)


def test_a_directory_is_taken_by_the_digest_that_was_told_of_it_before(
    root: Path, fetcher: Fetcher, tmp_path: Path
) -> None:
    uri = f"file://{root}/model"
    digest = fetcher.checkpoint(uri, tmp_path / "first").sha256
    assert fetcher.checkpoint(uri, tmp_path / "again", digest).sha256 == digest
    (root / "model" / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(ReferenceDiffers, match=digest):
        fetcher.checkpoint(uri, tmp_path / "changed", digest)


def test_an_archive_is_taken_by_its_own_digest_and_not_unpacked_where_it_differs(
    make_fetcher: Callable[..., Fetcher], upload: Callable[[str, bytes], Upload], tmp_path: Path
) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in CHECKPOINT.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    sent = upload("checkpoint.tar", archive.getvalue())
    fetcher = make_fetcher(uploads=(sent,))
    with pytest.raises(ReferenceDiffers):
        fetcher.checkpoint("upload:upl_1", tmp_path / "wrong", OTHER)
    assert list((tmp_path / "wrong").iterdir()) == []
    assert fetcher.checkpoint("upload:upl_1", tmp_path / "right", sent.sha256).sha256 == sent.sha256
