"""Copy one file from a source to this machine: from the cache if its version is current, otherwise by streaming.

Streaming is limited in bytes and time, and repeated if the source fails.
"""

import errno
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from worker.fetching.cache import ContentCache, Entry
from worker.fetching.errors import ReferenceTooLarge, SourceTooSlow, SourceUnavailable
from worker.fetching.policy import FetchPolicy
from worker.fetching.source import ReferenceSource, SourceContent

Result = TypeVar("Result")
_SLEEP_STEP = 0.2
"""Seconds between calls of ``check_stop`` while waiting for the next attempt."""


@dataclass(frozen=True)
class Transfer:
    """Downloads files."""

    cache: ContentCache
    policy: FetchPolicy
    check_stop: Callable[[], None]
    """Called often; raises to stop, for example because the job was cancelled."""
    begun: float = field(default_factory=time.monotonic)
    """When the first file of the job was requested."""

    def watch(self) -> None:
        """Called between pieces of whatever is written.

        Raises:
            OSError: the disk would be left too full.
            SourceTooSlow: the job has fetched for too long.
        """
        self.check_stop()
        self._check_room(0)
        if time.monotonic() - self.begun > self.policy.job_seconds:
            raise SourceTooSlow(
                f"the job's files take more than {self.policy.job_seconds:g} s to read in all; use faster sources"
            )

    def bring(self, source: ReferenceSource, place: str, name: str | None, destination: Path, limit: int) -> Entry:
        """Put a file at ``destination``, read-only.

        Args:
            place: names the file among all sources; never shown.
            name: its base name in the referenced directory; None for the referenced file itself.
            destination: must not exist.

        Raises:
            FetchError: it cannot be had, or has more bytes than ``limit``.
        """
        return self._patiently(lambda: self._attempt(source, place, name, destination, limit))

    def told_name(self, source: ReferenceSource) -> str:
        """What a source calls the referenced file when it is asked for it; empty if it does not say.

        Raises:
            FetchError: it cannot be had.
        """

        def ask() -> str:
            with source.open(None, None) as content:
                return content.name if content is not None else ""

        return self._patiently(ask)

    def _patiently(self, attempted: Callable[[], Result]) -> Result:
        for attempt in range(1, self.policy.attempts + 1):
            try:
                self.check_stop()
                return attempted()
            except SourceUnavailable:
                if attempt == self.policy.attempts:
                    raise
                self._pause(self.policy.backoff_seconds * 2 ** (attempt - 1))
        raise AssertionError("a transfer makes at least one attempt")

    def _attempt(self, source: ReferenceSource, place: str, name: str | None, destination: Path, limit: int) -> Entry:
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

    def _capped(self, content: SourceContent, name: str, limit: int) -> Iterator[bytes]:
        if content.size is not None and content.size > limit:
            raise _too_large(name, limit)
        self._check_room(content.size or 0)
        pace = _Pace(name, self.policy)
        received = 0
        for chunk in content.chunks:
            received += len(chunk)
            if received > limit:
                raise _too_large(name, limit)
            pace.check(received)
            self.watch()
            yield chunk
        if content.size is not None and received != content.size:
            raise SourceUnavailable(f"'{name}' broke off after {received} of {content.size} bytes; try again later")

    def _check_room(self, needed: int) -> None:
        if self.cache.free_bytes() < needed + self.policy.keep_free_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, hides nothing
        while (left := until - time.monotonic()) > 0:
            self.check_stop()
            time.sleep(min(left, _SLEEP_STEP))


class _Pace:
    """The speed of a download."""

    def __init__(self, name: str, policy: FetchPolicy) -> None:
        self._name = name
        self._policy = policy
        self._began = self._measured = time.monotonic()
        self._received = 0

    def check(self, received: int) -> None:
        """Check the speed after some bytes.

        Raises:
            SourceTooSlow: the download takes too long, or the last minute brought almost nothing.
        """
        policy, now = self._policy, time.monotonic()
        if now - self._began > policy.file_seconds:
            raise SourceTooSlow(
                f"'{self._name}' takes more than {policy.file_seconds:g} s to read; use a faster source"
            )
        passed = now - self._measured
        if passed < policy.pace_seconds:
            return
        if received - self._received < policy.slowest * passed:
            raise SourceTooSlow(
                f"'{self._name}' comes with less than {policy.slowest:g} bytes a second; use a faster source"
            )
        self._measured, self._received = now, received


def _too_large(name: str, limit: int) -> ReferenceTooLarge:
    return ReferenceTooLarge(
        f"'{name}' has more than the {limit} bytes that are left for it; reference something smaller"
    )
