"""Brings one file from a source to this machine: from the cache if its version is still current, else by streaming it
under a cap of bytes and time, trying again where the source fails."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from worker.fetching.cache import ContentCache, Entry
from worker.fetching.errors import ReferenceTooLarge, SourceTooSlow, SourceUnavailable
from worker.fetching.policy import FetchPolicy
from worker.fetching.source import Content, Source

_SLEEP_STEP = 0.2
"""Seconds between looks at whether the job is still wanted while waiting for the next attempt."""


@dataclass(frozen=True)
class Transfer:
    """How files are brought."""

    cache: ContentCache
    policy: FetchPolicy
    heed: Callable[[], None]
    """Called often; raises to break off, for example because the job was cancelled."""

    def bring(self, source: Source, place: str, name: str | None, destination: Path, limit: int) -> Entry:
        """Put a file at ``destination``, read-only.

        Args:
            source: where it is.
            place: names the file among all sources; never shown.
            name: its base name in the referenced directory; None for the referenced file itself.
            destination: must not exist.
            limit: most bytes.

        Raises:
            FetchError: it cannot be had, or has more bytes than ``limit``.
        """
        for attempt in range(1, self.policy.attempts + 1):
            try:
                return self._attempt(source, place, name, destination, limit)
            except SourceUnavailable:
                if attempt == self.policy.attempts:
                    raise
                self._pause(self.policy.backoff_seconds * 2 ** (attempt - 1))
        raise AssertionError("a transfer makes at least one attempt")

    def _attempt(self, source: Source, place: str, name: str | None, destination: Path, limit: int) -> Entry:
        self.heed()
        kept = self.cache.find(place)
        with source.open(name, kept.version if kept else None) as content:
            if content is not None:
                chunks = self._capped(content, destination.name, limit)
                return self.cache.add(place, content.version, chunks, destination)
        assert kept is not None  # a source says "unchanged" only of a version that it was given
        if kept.size > limit:
            raise _too_large(destination.name, limit)
        if not self.cache.link(kept, destination):
            raise SourceUnavailable(f"'{destination.name}' was cleared from the cache at this moment; try again")
        return kept

    def _capped(self, content: Content, name: str, limit: int) -> Iterator[bytes]:
        if content.size is not None and content.size > limit:
            raise _too_large(name, limit)
        deadline = time.monotonic() + self.policy.file_seconds
        received = 0
        for chunk in content.chunks:
            received += len(chunk)
            if received > limit:
                raise _too_large(name, limit)
            if time.monotonic() > deadline:
                raise SourceTooSlow(
                    f"'{name}' takes more than {self.policy.file_seconds:g} s to read; use a faster source"
                )
            self.heed()
            yield chunk
        if content.size is not None and received != content.size:
            raise SourceUnavailable(f"'{name}' broke off after {received} of {content.size} bytes; try again later")

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, hides nothing
        while (left := until - time.monotonic()) > 0:
            self.heed()
            time.sleep(min(left, _SLEEP_STEP))


def _too_large(name: str, limit: int) -> ReferenceTooLarge:
    return ReferenceTooLarge(
        f"'{name}' has more than the {limit} bytes that are left for it; reference something smaller"
    )
