"""Files of this machine, under the directories that the operator has opened and nowhere else."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from axformer.intake.names import MODULE_FILES, is_checkpoint_file
from store.references import ParsedReference
from worker.fetching.errors import ReferenceDenied, ReferenceForbidden, ReferenceInvalid, ReferenceMissing
from worker.fetching.http import CHUNK_BYTES
from worker.fetching.policy import FetchPolicy
from worker.fetching.source import ReferenceSource, SourceContent

_COPY = "copy the files with what they lead to (cp -rL)"


class LocalSource(ReferenceSource):
    """A ``file://`` reference."""

    def __init__(self, reference: ParsedReference, policy: FetchPolicy) -> None:
        super().__init__(reference, policy)
        self._roots = [root.resolve() for root in policy.file_roots]

    def names(self) -> Sequence[str] | None:
        with self._as_fetch_errors():
            directory = self._resolved(Path(self._reference.path))
            entries = sorted([*directory.iterdir(), *(directory / name for name in MODULE_FILES)])
        names = {str(entry.relative_to(directory)): entry for entry in entries}
        gone = [
            name
            for name, entry in names.items()
            if entry.is_symlink() and not entry.exists() and is_checkpoint_file(name)
        ]
        if gone:
            raise ReferenceMissing(f"'{self._reference.shown}/{gone[0]}' is a link whose target is gone; {_COPY}")
        return [name for name, entry in names.items() if entry.is_file()]

    @contextmanager
    def open(self, name: str | None, known: str | None) -> Iterator[SourceContent | None]:
        path = Path(self._reference.path)
        with self._as_fetch_errors():
            path = self._resolved(path if name is None else path / name)
            file = _open(path)
        with file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise ReferenceInvalid(f"'{self._reference.shown}' is not a file; name one")
            version = f"{state.st_ino}-{state.st_mtime_ns}-{state.st_size}"
            if version == known:
                yield None
            else:
                yield SourceContent(iter(lambda: file.read(CHUNK_BYTES), b""), state.st_size, version)

    def _resolved(self, path: Path) -> Path:
        """The path without links, if it lies under a root. A path outside is refused alike whether it exists or not."""
        resolved = path.resolve()
        if not any(resolved.is_relative_to(root) for root in self._roots):
            raise ReferenceForbidden(
                f"'{self._reference.shown}' does not lie under a directory that this service reads; "
                "upload the file, or have the operator open its directory"
            )
        return resolved

    @contextmanager
    def _as_fetch_errors(self) -> Iterator[None]:
        shown = self._reference.shown
        try:
            yield
        except FileNotFoundError:
            raise ReferenceMissing(f"'{shown}' does not exist; check the path") from None
        except IsADirectoryError:
            raise ReferenceInvalid(f"'{shown}' is not a file; name one") from None
        except NotADirectoryError:
            raise ReferenceInvalid(f"'{shown}' is not a directory; name the checkpoint's directory") from None
        except PermissionError:
            raise ReferenceDenied(f"'{shown}' may not be read by the worker; change its mode") from None
        except (OSError, RuntimeError) as error:  # a name that is too long, links in a circle
            raise ReferenceInvalid(f"'{shown}' cannot be opened ({error}); check the path") from None


def _open(path: Path) -> IO[bytes]:
    """Open a path that has been checked: not a link that has come there since, and without waiting for a pipe's writer."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
