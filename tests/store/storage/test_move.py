"""A storage moved into another one is the same, and moving twice is moving once."""

from pathlib import Path

import pytest

from store.errors import ContentChangedError
from store.move import move
from store.storage.object_storage import ObjectStorage
from store.storage.storage import LocalStorage, job_folder, upload_folder
from tests.object_store import ObjectStore


def test_all_content_is_there_afterwards(object_store: ObjectStore, tmp_path: Path) -> None:
    source = LocalStorage(tmp_path / "files")
    target = ObjectStorage(object_store.bucket(), "files", tmp_path / "spool")
    kept = [(folder, source.put(folder, [folder.encode()])) for folder in (job_folder("job_1"), upload_folder("upl_1"))]
    assert (move(source, target), move(source, target)) == (2, 0)
    for folder, stored in kept:
        assert b"".join(target.read(folder, stored.sha256)) == folder.encode()
    again = LocalStorage(tmp_path / "again")
    assert move(target, again) == 2


def test_damaged_content_is_not_moved(object_store: ObjectStore, tmp_path: Path) -> None:
    source = LocalStorage(tmp_path / "files")
    target = ObjectStorage(object_store.bucket(), "files", tmp_path / "spool")
    stored = source.put(job_folder("job_1"), [b"as it was"])
    source.path(job_folder("job_1"), stored.sha256).write_bytes(b"damaged")
    with pytest.raises(ContentChangedError, match="restore it from a backup"):
        move(source, target)
    assert target.folders("jobs") == []
