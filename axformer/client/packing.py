"""Prepare uploads: a file unchanged, or a checkpoint's directory as an archive of the files that the service reads."""

import hashlib
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from axformer.errors import CheckpointError, DataError
from axformer.intake.foreign import adapter_beside, remedy_in
from axformer.intake.names import CONFIG, MODULE_FILES, is_checkpoint_file, is_shard

_MODE = 0o644


@dataclass(frozen=True)
class Packed:
    """A file that is open for sending, repeatedly if necessary."""

    name: str
    file: IO[bytes]
    sha256: str


@contextmanager
def packed(path: Path) -> Iterator[Packed]:
    """A file, or a directory packed as ``NAME.tar`` in a temporary file.

    Raises:
        CheckpointError: the directory is not a checkpoint with safetensors weights.
        DataError: the path is neither file nor directory, or cannot be read.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(_opened(path))
            digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type] # it reads into buffers
        except FileNotFoundError:
            raise DataError(f"'{path}' does not exist; give a file, or the directory of a checkpoint") from None
        except OSError as error:
            raise DataError(f"'{path}' cannot be read: {error.strerror}") from None
        name = f"{path.resolve().name}.tar" if path.is_dir() else path.name
        yield Packed(sendable(name), file, digest)


def sendable(name: str) -> str:
    """A name with what UTF-8 cannot write replaced: the system's names of files are bytes, which may be of another encoding."""
    return name.encode("utf-8", "replace").decode()


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    if not path.is_dir():
        with path.open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as archive:
        _pack(path, archive)
        archive.seek(0)
        yield archive


def _pack(directory: Path, archive: IO[bytes]) -> None:
    files = sorted(path for path in directory.iterdir() if path.is_file() and is_checkpoint_file(path.name))
    if not any(is_shard(path.name) for path in files) or not (directory / CONFIG).is_file():
        raise CheckpointError(
            f"'{directory}' is not a checkpoint with safetensors weights: it needs {CONFIG} and *.safetensors; "
            f"{remedy_in(directory)}; data is sent as one file"
        )
    adapter = adapter_beside([path.name for path in files])
    if adapter is not None:
        raise CheckpointError(f"'{directory}' is no checkpoint to send: {adapter}")
    files += [directory / name for name in MODULE_FILES if (directory / name).is_file()]
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in files:
            info = tarfile.TarInfo(path.relative_to(directory).as_posix())
            info.size, info.mode = path.stat().st_size, _MODE
            with path.open("rb") as file:
                tar.addfile(info, file)


class Watched:
    """A file that reports how far it has been read."""

    def __init__(self, file: IO[bytes], on_progress: Callable[[int], None]) -> None:
        self._file = file
        self._on_progress = on_progress
        self._reported = 0

    def read(self, size: int = -1) -> bytes:
        """Read and report the progress."""
        chunk = self._file.read(size)
        self._on_progress(self._file.tell() - self._reported)
        self._reported = self._file.tell()
        return chunk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
