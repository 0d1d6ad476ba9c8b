"""Content on its way into a storage and out of it: counted and hashed."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO

from store.errors import ContentChangedError, TooLargeError


@dataclass(frozen=True)
class Stored:
    """Content that has been stored."""

    sha256: str
    bytes: int


def copy_counted(chunks: Iterable[bytes], file: IO[bytes], max_bytes: int | None) -> Stored:
    """Write content to a file, and say what was written.

    Raises:
        TooLargeError: there are more than ``max_bytes``.
    """
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        size += len(chunk)
        if max_bytes is not None and size > max_bytes:
            raise TooLargeError(f"the content is larger than the {max_bytes} bytes allowed")
        digest.update(chunk)
        file.write(chunk)
    return Stored(sha256=digest.hexdigest(), bytes=size)


def checked(chunks: Iterable[bytes], name: str, sha256: str) -> Iterator[bytes]:
    """Whole content in chunks, the last of which comes only if all of it has this hash.

    Args:
        name: what the message calls it.

    Raises:
        ContentChangedError: it has another.
    """
    digest, held = hashlib.sha256(), b""
    for chunk in chunks:
        digest.update(chunk)
        if held:
            yield held
        held = chunk
    if digest.hexdigest() != sha256:
        raise ContentChangedError(
            f"{name} was changed in the storage: its SHA-256 is {digest.hexdigest()} now; restore it from a backup, or make it "
            "again"
        )
    if held:
        yield held
