"""A bucket that is away, refuses, fails, is full, or is changed by somebody else: a clear error, and nothing half-written."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from store.errors import (
    ContentChangedError,
    StorageError,
    StorageFullError,
    StorageRefusedError,
    StorageUnavailableError,
)
from store.settings import Settings
from store.storage.bucket import BLOCK_BYTES, Bucket
from store.storage.object_storage import ObjectStorage
from store.storage.storage import LocalStorage, job_folder, open_storage
from tests.object_store import Environ, Fault, ObjectStore, Rule, always, times

FOLDER = job_folder("job_0199")
REFUSED = [
    (Fault(403, "AccessDenied"), "may not do this to s3://.*grant s3:GetObject, s3:PutObject"),
    (Fault(400, "ExpiredToken"), "credentials for the bucket '.*' have ended .*renew them"),
    (Fault(403, "InvalidAccessKeyId"), "does not know the credentials .*correct AWS_ACCESS_KEY_ID"),
    (Fault(404, "NoSuchBucket"), "the bucket '.*' is not there .*create it, or correct AXFORMER_STORAGE"),
]


@pytest.fixture
def bucket(object_store: ObjectStore) -> Bucket:
    return object_store.bucket()


@pytest.fixture
def storage(bucket: Bucket, tmp_path: Path) -> ObjectStorage:
    return ObjectStorage(bucket, "some/where", tmp_path / "spool")


@pytest.fixture
def left(object_store: ObjectStore, bucket: Bucket) -> Callable[[], list[str]]:
    """All that is in the bucket: objects, and uploads that have begun."""

    def look() -> list[str]:
        objects = object_store.client.list_objects_v2(Bucket=bucket.name).get("Contents", [])
        uploads = object_store.client.list_multipart_uploads(Bucket=bucket.name).get("Uploads", [])
        return [entry["Key"] for entry in [*objects, *uploads]]

    return look


@pytest.fixture(scope="module")
def large() -> bytes:
    return os.urandom(3 * BLOCK_BYTES + 5)


def part(number: int, fault: Fault) -> Rule:
    """Sending the part of this number meets the fault."""

    def rule(environ: Environ) -> Fault | None:
        is_it = environ["REQUEST_METHOD"] == "PUT" and f"partNumber={number}&" in f"{environ['QUERY_STRING']}&"
        return fault if is_it else None

    return rule


@pytest.mark.parametrize(("fault", "says"), REFUSED)
def test_a_refusal_says_what_to_do(object_store: ObjectStore, storage: ObjectStorage, fault: Fault, says: str) -> None:
    stored = storage.put(FOLDER, [b"x"])
    acts: list[Callable[[], Any]] = [
        storage.check,
        lambda: storage.put(FOLDER, [b"y"]),
        lambda: list(storage.read(FOLDER, stored.sha256)),
        lambda: storage.delete(FOLDER),
        lambda: storage.folders("jobs"),
        lambda: storage.delete_unfinished(older_than=0),
    ]
    with object_store.failing(always(fault)):
        for act in acts:
            with pytest.raises(StorageRefusedError, match=says):
                act()
    assert b"".join(storage.read(FOLDER, stored.sha256)) == b"x"


def test_a_bucket_that_is_not_there_is_told_at_the_check(object_store: ObjectStore, tmp_path: Path) -> None:
    missing = ObjectStorage(Bucket("no-such-bucket", object_store.settings()), "", tmp_path)
    with pytest.raises(StorageRefusedError, match="the bucket 'no-such-bucket' is not there"):
        missing.check()
    with pytest.raises(StorageRefusedError, match="the bucket 'no-such-bucket' is not there"):
        missing.read(FOLDER, "0" * 64)


def test_a_bucket_that_can_only_be_read_is_refused_at_the_check(
    object_store: ObjectStore, storage: ObjectStorage
) -> None:
    with (
        object_store.failing(always(Fault(403, "AccessDenied"), "PUT")),
        pytest.raises(StorageRefusedError, match="grant s3:GetObject, s3:PutObject"),
    ):
        storage.check()


def test_without_credentials_the_check_says_which_to_set(
    object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(StorageRefusedError, match=r"no credentials .* set AWS_ACCESS_KEY_ID"):
        ObjectStorage(object_store.bucket(), "", tmp_path).check()


def test_a_store_that_does_not_answer_is_unavailable(object_store: ObjectStore, tmp_path: Path) -> None:
    settings = object_store.settings(endpoint="http://127.0.0.1:9", attempts=1)
    with pytest.raises(StorageUnavailableError, match=r"does not answer .*check AXFORMER_STORAGE_ENDPOINT") as caught:
        ObjectStorage(Bucket("any", settings), "", tmp_path).check()
    assert not isinstance(caught.value, StorageRefusedError)


@pytest.mark.parametrize("fault", [Fault(503, "SlowDown"), Fault(500, "InternalError"), Fault(breaks_after=20)])
@pytest.mark.parametrize("method", ["PUT", "GET", "HEAD"])
def test_one_failure_is_bridged(object_store: ObjectStore, storage: ObjectStorage, fault: Fault, method: str) -> None:
    with object_store.failing(times(1, fault, method)):
        stored = storage.put(FOLDER, [b"x" * 1000])
        assert b"".join(storage.read(FOLDER, stored.sha256)) == b"x" * 1000


def test_a_store_that_always_fails_is_given_up_and_leaves_nothing(
    object_store: ObjectStore, storage: ObjectStorage, left: Callable[[], list[str]], large: bytes
) -> None:
    for content in (b"x", large):
        with (
            object_store.failing(always(Fault(503, "SlowDown"), "PUT", "POST")),
            pytest.raises(StorageUnavailableError, match=r"fails .SlowDown, status 503"),
        ):
            storage.put(FOLDER, [content])
    assert left() == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 4])
def test_a_part_that_cannot_be_sent_leaves_nothing(
    object_store: ObjectStore, storage: ObjectStorage, left: Callable[[], list[str]], large: bytes, number: int
) -> None:
    with object_store.failing(part(number, Fault(503))), pytest.raises(StorageUnavailableError):
        storage.put(FOLDER, [large])
    assert left() == []
    with object_store.failing(times(1, Fault(503), "PUT")):
        assert storage.put(FOLDER, [large]).bytes == len(large)
    assert len(left()) == 1


def test_an_upload_whose_last_answer_is_lost_is_whole(
    object_store: ObjectStore, storage: ObjectStorage, large: bytes
) -> None:
    """The store has ended it, the connection breaks, and the repeated request finds no upload any more."""

    def rule(environ: Environ) -> Fault | None:
        is_last = environ["REQUEST_METHOD"] == "POST" and "uploadId=" in environ["QUERY_STRING"]
        return Fault(breaks_after=0) if is_last and not seen.append(1) and len(seen) == 1 else None

    seen: list[int] = []
    with object_store.failing(rule):
        stored = storage.put(FOLDER, [large])
    assert b"".join(storage.read(FOLDER, stored.sha256)) == large


@pytest.mark.parametrize("fault", [Fault(507, "InsufficientStorage"), Fault(403, "QuotaExceeded")])
def test_a_full_store_is_told(
    object_store: ObjectStore, storage: ObjectStorage, left: Callable[[], list[str]], fault: Fault
) -> None:
    with (
        object_store.failing(always(fault, "PUT")),
        pytest.raises(StorageFullError, match=r"is full .*make room, or raise its quota"),
    ):
        storage.put(FOLDER, [b"x"])
    assert left() == []


def test_reading_goes_on_after_a_break(object_store: ObjectStore, storage: ObjectStorage, large: bytes) -> None:
    stored = storage.put(FOLDER, [large])
    for start in (0, 5):
        with object_store.failing(times(1, Fault(breaks_after=BLOCK_BYTES // 2), "GET")):
            assert b"".join(storage.read(FOLDER, stored.sha256, start=start)) == large[start:]


def test_a_store_that_breaks_again_and_again_is_read_as_long_as_it_gives_something(
    object_store: ObjectStore, storage: ObjectStorage, large: bytes
) -> None:
    stored = storage.put(FOLDER, [large])
    with object_store.failing(times(3, Fault(breaks_after=BLOCK_BYTES // 2), "GET")):
        assert b"".join(storage.read(FOLDER, stored.sha256)) == large
    with (
        object_store.failing(always(Fault(breaks_after=0), "GET")),
        pytest.raises(StorageUnavailableError, match="does not answer"),
    ):
        list(storage.read(FOLDER, stored.sha256))


def test_an_object_that_somebody_put_there_is_refused_before_its_first_byte(
    object_store: ObjectStore, storage: ObjectStorage, bucket: Bucket, large: bytes
) -> None:
    stored = storage.put(FOLDER, [large])
    key = f"some/where/{FOLDER}/{stored.sha256}"
    object_store.client.put_object(Bucket=bucket.name, Key=key, Body=bytes([large[0] ^ 1]) + large[1:])
    for about in ({}, {"start": 5}, {"start": 0, "stop": 5}):
        with pytest.raises(ContentChangedError, match="was not put into the storage by this service"):
            storage.read(FOLDER, stored.sha256, **about)


def test_an_object_that_changes_while_it_is_read_is_refused(
    object_store: ObjectStore, storage: ObjectStorage, bucket: Bucket, large: bytes
) -> None:
    stored = storage.put(FOLDER, [large])
    chunks = storage.read(FOLDER, stored.sha256, start=1)
    with object_store.failing(times(1, Fault(breaks_after=BLOCK_BYTES // 2), "GET")):
        next(chunks)
    key, about = f"some/where/{FOLDER}/{stored.sha256}", {"sha256": stored.sha256}
    object_store.client.put_object(Bucket=bucket.name, Key=key, Body=bytes([large[0] ^ 1]) + large[1:], Metadata=about)
    with pytest.raises(ContentChangedError, match="was changed while it was read"):
        list(chunks)


def test_a_changed_part_of_small_content_is_refused_too(
    object_store: ObjectStore, storage: ObjectStorage, bucket: Bucket
) -> None:
    stored = storage.put(FOLDER, [b"as it was"])
    key, about = f"some/where/{FOLDER}/{stored.sha256}", {"sha256": stored.sha256}
    object_store.client.put_object(Bucket=bucket.name, Key=key, Body=b"as it is.", Metadata=about)
    with pytest.raises(ContentChangedError, match="was changed in the storage"):
        list(storage.read(FOLDER, stored.sha256, start=0, stop=2))


def test_uploads_without_news_are_ended_and_others_left(
    object_store: ObjectStore, storage: ObjectStorage, bucket: Bucket, left: Callable[[], list[str]]
) -> None:
    """The store of these tests says of every upload that it began long ago; one of them gets a part now."""
    uploads = {}
    for key in ("some/where/jobs/job_1/x", "some/where/jobs/job_2/y", "elsewhere/z"):
        begun = object_store.client.create_multipart_upload(Bucket=bucket.name, Key=key)
        uploads[key] = {"Bucket": bucket.name, "Key": key, "UploadId": begun["UploadId"]}
    object_store.client.upload_part(**uploads["some/where/jobs/job_1/x"], PartNumber=1, Body=b"x")
    assert storage.delete_unfinished(older_than=60) == 1
    assert sorted(left()) == ["elsewhere/z", "some/where/jobs/job_1/x"]
    assert storage.delete_unfinished(older_than=-60) == 1
    assert left() == ["elsewhere/z"]


@pytest.mark.parametrize(("count", "noted"), [(2, "2"), (3, None)])
def test_a_note_that_other_janitors_write_meanwhile_is_read_again_and_not_taken_for_none(
    object_store: ObjectStore, storage: ObjectStorage, count: int, noted: str | None
) -> None:
    storage.set_owner("0")
    written = []

    def write(environ: Environ) -> None:
        if environ["REQUEST_METHOD"] == "GET" and environ["PATH_INFO"].endswith("/database") and len(written) < count:
            written.append("a note")
            storage.set_owner(str(len(written)))

    with object_store.failing(write):
        if noted is None:
            with pytest.raises(ContentChangedError):
                storage.owner()
        else:
            assert storage.owner() == noted


def test_an_address_gives_the_file_to_anybody_for_a_while(object_store: ObjectStore, storage: ObjectStorage) -> None:
    stored = storage.put(FOLDER, [b"content"])
    address = storage.address(FOLDER, stored.sha256, name="ä b.json", media_type="application/json", seconds=60)
    assert address is not None
    with urlopen(address) as answer:
        assert answer.read() == b"content"
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["Content-Disposition"] == "attachment; filename*=UTF-8''%C3%A4%20b.json"
    assert "X-Amz-Expires=60" in address
    assert "test-secret" not in address


def test_settings_name_a_directory_or_a_bucket(settings: Settings, object_store: ObjectStore, tmp_path: Path) -> None:
    def changed(place: str | None) -> Settings:
        return Settings(database_url=settings.database_url, var_dir=tmp_path, storage=place)

    assert isinstance(open_storage(changed(None)), LocalStorage)
    assert changed(None).storage_dir == tmp_path / "storage"
    assert changed("/srv/files").storage_dir == Path("/srv/files")
    assert changed("s3://bucket").storage_bucket == ("bucket", "")
    assert changed("s3://bucket/a/b/").storage_bucket == ("bucket", "a/b")
    assert isinstance(open_storage(changed("s3://bucket/a")), ObjectStorage)
    for wrong in ("s3://", "s3://B", "gs://bucket", "s3://bucket//x", "s3://bucket/a?b"):
        with pytest.raises(ValueError, match="is neither a directory nor a bucket"):
            changed(wrong)


def test_a_directory_that_cannot_be_written_is_told_at_the_check(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageRefusedError, match=r"cannot be written .*AXFORMER_STORAGE"):
        LocalStorage(tmp_path / "file").check()


def test_what_was_deleted_is_not_there(storage: ObjectStorage) -> None:
    stored = storage.put(FOLDER, [b"x"])
    chunks = storage.read(FOLDER, stored.sha256)
    storage.delete(FOLDER)
    with pytest.raises(StorageError, match="the storage has no"):
        list(chunks)
