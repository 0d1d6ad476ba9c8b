"""The calls of an S3-compatible store that the service makes, each with bounded waits and repetitions.

Every body is signed with its SHA-256, which every such store checks before it takes the bytes. What is read is
read of one version of an object, and goes on where a connection breaks.
"""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import IO, Any

import botocore.loaders
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from store.errors import StorageError, StoreError
from store.setting_groups import StorageSettings
from store.storage.bucket_errors import as_storage_errors

BLOCK_BYTES = 8 << 20
"""Bytes of a part of an upload, and of what is sent in one request: large enough that the round trip does not matter."""
_CHUNK_BYTES = 1 << 20
"""Bytes that are read at a time."""
_MOST_PARTS = 10_000
_AT_ONCE = 4
"""Parts that are sent at the same time; with these, a single upload fills a network of 10 Gbit/s."""
_LOADER = botocore.loaders.create_loader()
"""What the library reads of its files, once a process: it takes a tenth of a second."""
_MOST_CONNECTIONS = 64
"""Connections kept open; as many threads may read and send at once."""
_BACKOFF_SECONDS = 0.5
"""Pause before a read goes on; it doubles each time."""


@dataclass(frozen=True)
class Key:
    """A key of somebody's own, in the place of the service's credentials."""

    id: str
    secret: str = field(repr=False)
    session: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Found:
    """An object as it is now."""

    size: int
    etag: str
    metadata: Mapping[str, str]


@dataclass(frozen=True)
class Listed:
    """An object in a list."""

    key: str
    age: float
    """Seconds since it was written, by the store's clock."""


class Bucket:
    """A bucket; its methods raise what ``as_storage_errors`` says."""

    def __init__(self, name: str, settings: StorageSettings, key: Key | None = None) -> None:
        """
        Args:
            key: of a bucket that is not the service's.
        """
        self.name = name
        self._attempts = settings.attempts
        self._client = _make_client(settings, key)

    def put(self, key: str, file: IO[bytes], size: int, metadata: Mapping[str, str]) -> None:
        """Store a file of some bytes; the object appears when all of it has arrived."""
        with as_storage_errors(self.name, key):
            if size <= BLOCK_BYTES:
                self._client.put_object(Bucket=self.name, Key=key, Body=file.read(), Metadata=dict(metadata))
            else:
                self._put_parts(key, file, size, metadata)

    def find(self, key: str) -> Found:
        """The object of a key."""
        with as_storage_errors(self.name, key):
            try:
                answer = self._client.head_object(Bucket=self.name, Key=key)
            except ClientError:
                # The answer to HEAD has no body that says why. If the bucket lists, then the object is not there.
                self._client.list_objects_v2(Bucket=self.name, Prefix=key, MaxKeys=1)
                raise
        # Servers write the names of headers as they like.
        metadata = {name.lower(): value for name, value in answer["Metadata"].items()}
        return Found(answer["ContentLength"], answer["ETag"], metadata)

    def read(self, key: str, found: Found, start: int, stop: int) -> Iterator[bytes]:
        """The bytes of an object as it was found, from ``start`` to ``stop`` (half open), in chunks. A connection that breaks
        is opened again where it broke, as often as requests are repeated without a byte in between."""
        failed = 0
        while start < stop:
            try:
                for chunk in self._stream(key, found, start, stop):
                    failed, start = 0, start + len(chunk)
                    yield chunk
            except StorageError:
                raise
            except StoreError:
                failed += 1
                if failed == self._attempts:
                    raise
                time.sleep(_BACKOFF_SECONDS * 2 ** (failed - 1))

    def names(self, prefix: str) -> list[str]:
        """What follows the prefix up to the next slash, of all keys that have both."""
        with as_storage_errors(self.name, prefix):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self.name, Prefix=prefix, Delimiter="/"
            )
            found = [entry["Prefix"] for page in pages for entry in page.get("CommonPrefixes", [])]
        return sorted(name.removeprefix(prefix).rstrip("/") for name in found)

    def listed(self, prefix: str) -> list[Listed]:
        """The objects below a prefix."""
        with as_storage_errors(self.name, prefix):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
            return [
                Listed(entry["Key"], (_time_of(page) - entry["LastModified"]).total_seconds())
                for page in pages
                for entry in page.get("Contents", [])
            ]

    def delete(self, *keys: str) -> None:
        """Remove objects, if they exist."""
        for key in keys:  # one by one: deleting many needs a checksum that older stores do not know
            with as_storage_errors(self.name, key):
                self._client.delete_object(Bucket=self.name, Key=key)

    def abort_uploads(self, prefix: str, older_than: float) -> int:
        """End uploads below a prefix that have got no part for some seconds, and return their number."""
        with as_storage_errors(self.name, prefix):
            pages = self._client.get_paginator("list_multipart_uploads").paginate(Bucket=self.name, Prefix=prefix)
            begun = [(upload, _time_of(page)) for page in pages for upload in page.get("Uploads", [])]
            old = [upload for upload, now in begun if self._silent_seconds(upload, now) > older_than]
            for upload in old:
                self._client.abort_multipart_upload(Bucket=self.name, Key=upload["Key"], UploadId=upload["UploadId"])
        return len(old)

    def address(self, key: str, seconds: int, **answered: str) -> str:
        """An address at which anybody can read an object for some seconds, with these headers in the answer."""
        with as_storage_errors(self.name, key):
            asked = {"Bucket": self.name, "Key": key, **answered}
            address: str = self._client.generate_presigned_url("get_object", Params=asked, ExpiresIn=seconds)
        return address

    def _put_parts(self, key: str, file: IO[bytes], size: int, metadata: Mapping[str, str]) -> None:
        place = {"Bucket": self.name, "Key": key}
        begun = self._client.create_multipart_upload(**place, Metadata=dict(metadata))
        upload = place | {"UploadId": begun["UploadId"]}
        try:
            parts = self._send_parts(upload, file, max(BLOCK_BYTES, -(-size // _MOST_PARTS)))
            self._complete(upload, parts, size)
        except BaseException:
            with suppress(BotoCoreError, ClientError, OSError):  # the janitor ends what this cannot
                self._client.abort_multipart_upload(**upload)
            raise

    def _send_parts(self, upload: Mapping[str, str], file: IO[bytes], part_bytes: int) -> list[dict[str, Any]]:
        """Send a file in parts, a few at a time, and return what names them."""

        def send(number: int, body: bytes) -> dict[str, Any]:
            answer = self._client.upload_part(**upload, PartNumber=number, Body=body)
            return {"PartNumber": number, "ETag": answer["ETag"]}

        sent: list[Future[dict[str, Any]]] = []
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="upload") as threads:
            for number, body in enumerate(iter(lambda: file.read(part_bytes), b""), start=1):
                if number > _AT_ONCE:
                    sent[number - 1 - _AT_ONCE].result()  # no more parts in memory than are being sent
                sent.append(threads.submit(send, number, body))
        return [part.result() for part in sent]

    def _complete(self, upload: Mapping[str, str], parts: list[dict[str, Any]], size: int) -> None:
        try:
            self._client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
        except ClientError as error:
            # A repeated request finds no upload if the first one has ended it and only its answer was lost.
            if error.response["Error"].get("Code") != "NoSuchUpload" or self.find(upload["Key"]).size != size:
                raise

    def _stream(self, key: str, found: Found, start: int, stop: int) -> Iterator[bytes]:
        asked = {"Bucket": self.name, "Key": key, "IfMatch": found.etag}
        if stop - start < found.size:
            asked["Range"] = f"bytes={start}-{stop - 1}"
        with as_storage_errors(self.name, key), closing(self._client.get_object(**asked)["Body"]) as body:
            yield from iter(lambda: body.read(_CHUNK_BYTES), b"")

    def _silent_seconds(self, upload: Mapping[str, Any], now: datetime) -> float:
        """Seconds since an upload began or got its last part; 0 if it has just ended."""
        try:
            pages = self._client.get_paginator("list_parts").paginate(
                Bucket=self.name, Key=upload["Key"], UploadId=upload["UploadId"]
            )
            times = [part["LastModified"] for page in pages for part in page.get("Parts", [])]
        except ClientError as error:
            if error.response["Error"].get("Code") == "NoSuchUpload":
                return 0.0
            raise
        last: datetime = max([upload["Initiated"], *times])
        return (now - last).total_seconds()


def _make_client(settings: StorageSettings, key: Key | None) -> Any:
    session = botocore.session.get_session()
    session.register_component("data_loader", _LOADER)
    if key is not None:
        session.set_credentials(key.id, key.secret, key.session)
    return session.create_client(
        "s3",
        region_name=settings.region,
        endpoint_url=settings.endpoint or None,
        config=Config(
            connect_timeout=settings.connect_seconds,
            read_timeout=settings.read_seconds,
            retries={"mode": "standard", "total_max_attempts": settings.attempts},
            max_pool_connections=_MOST_CONNECTIONS,
            signature_version="s3v4",
            # Older stores know no checksums but that of the signature, which all check.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            s3={"payload_signing_enabled": True, "addressing_style": "path" if settings.endpoint else "auto"},
        ),
    )


def _time_of(answer: Mapping[str, Any]) -> datetime:
    """When the store sent an answer, by its own clock."""
    return parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
