"""What is stored is whole, private, and what was sent."""

import hashlib
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.errors import StorageError, TooLargeError
from store.storage import LocalStorage, job_folder, upload_folder

FOLDER = job_folder("job_0199")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where the storage of this test lies; not made yet."""
    return tmp_path / "storage"


@pytest.fixture
def storage(root: Path) -> LocalStorage:
    """An empty storage."""
    return LocalStorage(root)


def files_in(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chunks=st.lists(st.binary(max_size=50), max_size=5), data=st.data())
def test_what_is_read_is_what_was_stored(storage: LocalStorage, chunks: list[bytes], data: st.DataObject) -> None:
    content = b"".join(chunks)
    stored = storage.put(FOLDER, chunks)
    assert (stored.sha256, stored.bytes) == (hashlib.sha256(content).hexdigest(), len(content))
    assert b"".join(storage.read(FOLDER, stored.sha256)) == content
    start = data.draw(st.integers(0, len(content)))
    stop = data.draw(st.integers(start, len(content)))
    assert b"".join(storage.read(FOLDER, stored.sha256, start=start, stop=stop)) == content[start:stop]


def test_only_the_owner_may_look(storage: LocalStorage, root: Path) -> None:
    storage.put(FOLDER, [b"secret"])
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [root, *root.rglob("*")]}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}


def test_nothing_is_left_of_content_whose_sender_breaks_off(storage: LocalStorage, root: Path) -> None:
    def sending() -> Iterator[bytes]:
        yield b"half"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        storage.put(FOLDER, sending())
    assert files_in(root) == []


def test_nothing_is_left_of_content_that_is_too_large(storage: LocalStorage, root: Path) -> None:
    with pytest.raises(TooLargeError, match="larger than the 5 bytes allowed"):
        storage.put(FOLDER, [b"123", b"456"], max_bytes=5)
    assert files_in(root) == []
    assert storage.put(FOLDER, [b"123", b"45"], max_bytes=5).bytes == 5


def test_while_it_is_sent_content_is_not_visible(storage: LocalStorage) -> None:
    digest = hashlib.sha256(b"12").hexdigest()

    def sending() -> Iterator[bytes]:
        yield b"1"
        with pytest.raises(StorageError, match="the storage has no"):
            storage.path(FOLDER, digest)
        yield b"2"

    assert storage.put(FOLDER, sending()).sha256 == digest
    assert storage.path(FOLDER, digest).read_bytes() == b"12"


def test_many_may_store_the_same_content_at_once(storage: LocalStorage, root: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        stored = list(threads.map(lambda _: storage.put(FOLDER, [b"same"] * 100), range(16)))
    assert len(set(stored)) == 1
    assert len(files_in(root)) == 1


def test_deleting_a_folder_leaves_the_others(storage: LocalStorage, root: Path) -> None:
    gone, kept = storage.put(FOLDER, [b"x"]), storage.put(upload_folder("upl_1"), [b"x"])
    for _ in range(2):
        storage.delete(FOLDER)
    with pytest.raises(StorageError, match="the storage has no"):
        storage.read(FOLDER, gone.sha256)
    assert b"".join(storage.read(upload_folder("upl_1"), kept.sha256)) == b"x"
    assert len(files_in(root)) == 1


@pytest.mark.parametrize(
    "folder", ["", "jobs", "jobs/", "../etc", "jobs/..", "jobs/a/b", "/jobs/a", "jobs/A b", "jobs/a\n"]
)
def test_names_that_could_lead_elsewhere_are_refused(storage: LocalStorage, folder: str) -> None:
    for act in (
        lambda: storage.put(folder, []),
        lambda: storage.read(folder, "0" * 64),
        lambda: storage.delete(folder),
    ):
        with pytest.raises(StorageError, match="is not a folder of the storage"):
            act()


def test_a_hash_that_could_lead_elsewhere_is_refused(storage: LocalStorage) -> None:
    with pytest.raises(StorageError, match="is not a SHA-256"):
        storage.read(FOLDER, "../../secret")
