"""Objects of an S3-compatible store. The endpoint is that of the worker's environment (``AWS_...``), and so are credentials,
which are only used for buckets that the operator has granted to the team; others are read if they are public."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

import s3fs
from botocore.exceptions import BotoCoreError

from axformer.intake.names import MODULE_FILES
from store.references import ParsedReference
from worker.fetching.errors import FetchError, ReferenceDenied, ReferenceInvalid, ReferenceMissing, SourceUnavailable
from worker.fetching.http import CHUNK_BYTES
from worker.fetching.policy import FetchPolicy
from worker.fetching.source import ReferenceSource, SourceContent

_BLOCK_BYTES = 8 << 20
"""Bytes asked for at a time: large enough that the round trip does not matter."""


class S3Source(ReferenceSource):
    """An object, or the objects right below a prefix."""

    def __init__(self, reference: ParsedReference, policy: FetchPolicy) -> None:
        super().__init__(reference, policy)
        self._path = f"{reference.place}/{reference.path.strip('/')}".rstrip("/")

    def names(self) -> Sequence[str] | None:
        with self._as_fetch_errors():
            entries: list[dict[str, Any]] = [*self._files.ls(self._path, detail=True, refresh=True)]
            wanted = {f"{self._path}/{PurePosixPath(file).parent}" for file in MODULE_FILES}
            for folder in {entry["name"].rstrip("/") for entry in entries if entry["type"] == "directory"} & wanted:
                entries += self._files.ls(folder, detail=True, refresh=True)
        inside = [entry["name"].removeprefix(self._path).strip("/") for entry in entries if entry["type"] == "file"]
        return sorted(name for name in inside if name and ("/" not in name or name in MODULE_FILES))

    @contextmanager
    def open(self, name: str | None, known: str | None) -> Iterator[SourceContent | None]:
        path = self._path if name is None else f"{self._path}/{name}"
        with self._as_fetch_errors():
            info: dict[str, Any] = self._files.info(path, refresh=True)
            if info["type"] != "file":
                raise ReferenceInvalid(f"'{self._reference.shown}' is not an object; name one")
            file = self._files.open(path, "rb", block_size=_BLOCK_BYTES, cache_type="readahead")
        version = info.get("ETag")
        with file:
            if version and version == known:
                yield None
            else:
                chunks = iter(lambda: file.read(CHUNK_BYTES), b"")
                yield SourceContent(self._checked(chunks), info["size"], version)

    @cached_property
    def _files(self) -> Any:
        return s3fs.S3FileSystem(
            anon=not self._policy.uses_credentials(self._reference),
            config_kwargs={"connect_timeout": self._policy.connect_seconds, "read_timeout": self._policy.read_seconds},
            skip_instance_cache=True,
        )

    def _checked(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        with self._as_fetch_errors():
            yield from chunks

    @contextmanager
    def _as_fetch_errors(self) -> Iterator[None]:
        shown = self._reference.shown
        try:
            yield
        except FetchError:
            raise
        except FileNotFoundError:
            raise ReferenceMissing(f"nothing is found at '{shown}'; check bucket and key") from None
        except PermissionError:
            why = f"it is not public; have the operator grant s3://{self._reference.place} to your team"
            if self._policy.uses_credentials(self._reference):
                why = "the worker's credentials may not read it; grant access"
            raise ReferenceDenied(f"'{shown}' cannot be read: {why}, or upload it") from None
        except (BotoCoreError, OSError) as error:
            raise SourceUnavailable(f"'{shown}' cannot be read: {error}; check endpoint and credentials") from error
