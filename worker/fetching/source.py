"""The one interface behind every scheme, so that caps, retries, hashing and caching are written once."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from store.references import ParsedReference
from worker.fetching.policy import FetchPolicy


@dataclass(frozen=True)
class SourceContent:
    """A file that is being read."""

    chunks: Iterator[bytes]
    """The bytes; raises a ``FetchError`` where the source breaks off."""
    size: int | None
    """Size in bytes, if the source states it."""
    version: str | None
    """Changes whenever the content does (an ETag, a commit); None if the source has no such thing."""
    name: str = ""
    """What the source calls the file, or an ending alone; empty if it says neither."""


class ReferenceSource(ABC):
    """A place that holds the file, or the files, of one reference."""

    def __init__(self, reference: ParsedReference, policy: FetchPolicy) -> None:
        self._reference = reference
        self._policy = policy

    @property
    def filename(self) -> str:
        """Name of the referenced file itself, whose suffix tells what it is; empty for a directory."""
        return self._reference.filename

    def names(self) -> Sequence[str] | None:
        """Base names of the files in the referenced directory; None where the source cannot list.

        Raises:
            FetchError: the source refuses, fails, or holds no such directory.
        """
        return None

    @abstractmethod
    def open(self, name: str | None, known: str | None) -> AbstractContextManager[SourceContent | None]:
        """Start to read a file of the directory, or without a name the referenced file itself.

        Gives None if the version that is already ``known`` is still the current one, and this caller may read it: what is known
        may have been brought with the rights of another.

        Raises:
            FetchError: the source refuses, fails, or holds no such file.
        """
