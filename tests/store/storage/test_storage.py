"""The laws of storage, for both kinds: what is stored is whole, and what was sent; the rest is not there."""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.errors import ContentChangedError, StorageError, TooLargeError
from store.storage.bucket import BLOCK_BYTES
from store.storage.object_storage import ObjectStorage
from store.storage.storage import LocalStorage, Storage, job_folder, upload_folder
from tests.object_store import Reachable, sha256_of

FOLDER = job_folder("job_0199")
LAW = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@dataclass(frozen=True)
class Kind:
    """A kind of storage, with what a test sees of it from behind."""

    storage: Storage
    names: Callable[[], list[str]]
    """All files, or all keys."""
    overwrite: Callable[[str, bytes], None]
    """Change a file, or an object, as somebody else would."""


@pytest.fixture(params=["directory", "object_store", "signed_store"])
def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kind:
    """An empty storage of each kind."""
    if request.param == "directory":
        return directory(tmp_path / "storage")
    store = request.getfixturevalue(request.param)
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    return bucket(store, tmp_path / "spool")


def directory(root: Path) -> Kind:
    def names() -> list[str]:
        return [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]

    return Kind(LocalStorage(root), names, lambda name, content: (root / name).write_bytes(content) and None)


def bucket(store: Reachable, spool: Path) -> Kind:
    made, client = store.bucket(), store.client

    def names() -> list[str]:
        listed = client.list_objects_v2(Bucket=made.name).get("Contents", [])
        try:
            begun = client.list_multipart_uploads(Bucket=made.name).get("Uploads", [])
        except client.exceptions.NoSuchUpload:  # rclone's word for none
            begun = []
        keys = dict.fromkeys(entry["Key"] for entry in listed)  # rclone may list one twice that two write at once
        found = [*keys, *(entry["Key"] for entry in begun)] + [str(path) for path in spool.rglob("*")]
        return [name.removeprefix("some/where/") for name in found]

    def overwrite(name: str, content: bytes) -> None:
        key = f"some/where/{name}"
        about = client.head_object(Bucket=made.name, Key=key)["Metadata"]
        client.put_object(Bucket=made.name, Key=key, Body=content, Metadata=about)

    return Kind(ObjectStorage(made, "some/where", spool), names, overwrite)


@pytest.fixture
def storage(kind: Kind) -> Storage:
    return kind.storage


@LAW
@given(chunks=st.lists(st.binary(max_size=50), max_size=5), data=st.data())
def test_what_is_read_is_what_was_stored(storage: Storage, chunks: list[bytes], data: st.DataObject) -> None:
    content = b"".join(chunks)
    stored = storage.put(FOLDER, chunks)
    assert (stored.sha256, stored.bytes) == (hashlib.sha256(content).hexdigest(), len(content))
    assert b"".join(storage.read(FOLDER, stored.sha256)) == content
    start = data.draw(st.integers(0, len(content)))
    stop = data.draw(st.integers(start, len(content)))
    assert b"".join(storage.read(FOLDER, stored.sha256, start=start, stop=stop)) == content[start:stop]


@pytest.fixture(scope="module")
def large() -> bytes:
    """Content of some blocks, none of which is like another."""
    return os.urandom(2 * BLOCK_BYTES + 12_345)


def test_content_of_many_blocks_is_read_as_it_was_stored(storage: Storage, large: bytes) -> None:
    stored = storage.put(FOLDER, [large[:7], large[7 : BLOCK_BYTES + 1], large[BLOCK_BYTES + 1 :]])
    assert stored.sha256 == sha256_of(large)
    assert b"".join(storage.read(FOLDER, stored.sha256)) == large
    for start, stop in [(0, 1), (BLOCK_BYTES - 1, BLOCK_BYTES + 1), (5, 2 * BLOCK_BYTES), (len(large) - 1, None)]:
        assert b"".join(storage.read(FOLDER, stored.sha256, start=start, stop=stop)) == large[start:stop]


def test_what_was_stored_is_listed_in_its_folder(storage: Storage) -> None:
    assert (storage.folders("jobs"), storage.contents(FOLDER, older_than=-1)) == ([], [])
    stored = storage.put(FOLDER, [b"x"])
    storage.put(upload_folder("upl_1"), [b"x"])
    assert storage.folders("jobs") == [FOLDER]
    assert storage.contents(FOLDER, older_than=-60) == [stored.sha256]
    assert storage.contents(FOLDER, older_than=60) == []


def test_nothing_is_left_of_content_whose_sender_breaks_off(kind: Kind, large: bytes) -> None:
    def sending() -> Iterator[bytes]:
        yield large
        raise ConnectionError

    with pytest.raises(ConnectionError):
        kind.storage.put(FOLDER, sending())
    assert kind.names() == []


def test_nothing_is_left_of_content_that_is_too_large(kind: Kind) -> None:
    with pytest.raises(TooLargeError, match="larger than the 5 bytes allowed"):
        kind.storage.put(FOLDER, [b"123", b"456"], max_bytes=5)
    assert kind.names() == []
    assert kind.storage.put(FOLDER, [b"123", b"45"], max_bytes=5).bytes == 5


def test_while_it_is_sent_content_is_not_visible(storage: Storage) -> None:
    digest = sha256_of(b"12")

    def sending() -> Iterator[bytes]:
        yield b"1"
        with pytest.raises(StorageError, match="the storage has no"):
            storage.read(FOLDER, digest)
        yield b"2"

    assert storage.put(FOLDER, sending()).sha256 == digest
    assert b"".join(storage.read(FOLDER, digest)) == b"12"


def test_many_may_store_the_same_content_at_once(kind: Kind) -> None:
    with ThreadPoolExecutor(8) as threads:
        stored = list(threads.map(lambda _: kind.storage.put(FOLDER, [b"same"] * 100), range(16)))
    assert len(set(stored)) == 1
    assert kind.names() == [f"{FOLDER}/{stored[0].sha256}"]


def test_deleting_a_folder_leaves_the_others(kind: Kind) -> None:
    storage = kind.storage
    gone, kept = storage.put(FOLDER, [b"x"]), storage.put(upload_folder("upl_1"), [b"x"])
    neighbour = storage.put(f"{FOLDER}0", [b"y"])
    for _ in range(2):
        storage.delete(FOLDER)
    with pytest.raises(StorageError, match="the storage has no"):
        storage.read(FOLDER, gone.sha256)
    assert b"".join(storage.read(upload_folder("upl_1"), kept.sha256)) == b"x"
    assert sorted(kind.names()) == sorted([f"{FOLDER}0/{neighbour.sha256}", f"uploads/upl_1/{kept.sha256}"])


def test_deleting_one_content_leaves_the_others(kind: Kind) -> None:
    gone, kept = kind.storage.put(FOLDER, [b"x"]), kind.storage.put(FOLDER, [b"y"])
    for _ in range(2):
        kind.storage.delete_content(FOLDER, gone.sha256)
    assert kind.names() == [f"{FOLDER}/{kept.sha256}"]


@pytest.mark.parametrize("is_large", [False, True])
def test_content_that_somebody_changed_is_never_given_whole(kind: Kind, large: bytes, is_large: bool) -> None:
    content = large if is_large else b"as it was"
    stored = kind.storage.put(FOLDER, [content])
    kind.overwrite(f"{FOLDER}/{stored.sha256}", bytes([content[0] ^ 1]) + content[1:])
    given = []
    with pytest.raises(ContentChangedError, match="was changed in the storage"):
        given.extend(kind.storage.read(FOLDER, stored.sha256))
    assert sum(map(len, given)) < len(content)


def test_a_storage_notes_its_owner(storage: Storage) -> None:
    assert storage.owner() is None
    for note in ("one\n3 4", "behind one\n3 4"):
        storage.set_owner(note)
        assert storage.owner() == note


def test_a_check_leaves_nothing(kind: Kind) -> None:
    kind.storage.check()
    assert kind.names() == []


@pytest.mark.parametrize(
    "folder", ["", "jobs", "jobs/", "../etc", "jobs/..", "jobs/a/b", "/jobs/a", "jobs/A b", "jobs/a\n"]
)
def test_names_that_could_lead_elsewhere_are_refused(storage: Storage, folder: str) -> None:
    for act in (
        lambda: storage.put(folder, []),
        lambda: storage.read(folder, "0" * 64),
        lambda: storage.delete(folder),
        lambda: storage.contents(folder, older_than=0),
    ):
        with pytest.raises(StorageError, match="is not a folder of the storage"):
            act()


def test_a_hash_that_could_lead_elsewhere_is_refused(storage: Storage) -> None:
    for act in (storage.read, storage.delete_content):
        with pytest.raises(StorageError, match="is not a SHA-256"):
            act(FOLDER, "../../secret")


def test_only_the_owner_may_look_into_a_directory(tmp_path: Path) -> None:
    root = tmp_path / "storage"
    LocalStorage(root).put(FOLDER, [b"secret"])
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [root, *root.rglob("*")]}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}


def test_half_written_files_of_a_directory_go_with_time(tmp_path: Path) -> None:
    kind = directory(tmp_path)
    kind.storage.put(FOLDER, [b"kept"])
    half = tmp_path / "incoming" / "half"
    half.touch()
    assert kind.storage.delete_unfinished(older_than=60) == 0
    os.utime(half, (time.time() - 61,) * 2)
    assert kind.storage.delete_unfinished(older_than=60) == 1
    assert len(kind.names()) == 1
