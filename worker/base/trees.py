"""Remove a directory that a job's process may have filled: however deep, and whatever it holds."""

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE = stat.S_IRWXU


def remove_tree(path: Path) -> bool:
    """Remove a directory and all that is in it; links are removed and not followed.

    Directories inside directories are moved to the top before they are emptied. So neither recursion, nor the length of a path,
    nor the number of open files limits the depth.

    Returns:
        Whether nothing is left; what the system refuses stays, and the rest goes.
    """
    try:
        top = os.open(path, _OPEN)
    except FileNotFoundError:
        return True
    except OSError:  # a file, a link, or another user's
        return False
    try:
        moved = _Moved(top)
        while _emptied(top, moved):
            pass
    finally:
        os.close(top)
    with suppress(OSError):
        path.rmdir()
    return not path.exists()


class _Moved:
    """Names for directories that are moved to the top."""

    def __init__(self, top: int) -> None:
        self.top, self._mark, self._count = top, secrets.token_hex(8), 0

    def take(self, name: str, parent: int) -> None:
        """Move a directory to the top."""
        self._count += 1
        _own(name, parent)
        os.rename(name, f".{self._mark}-{self._count}", src_dir_fd=parent, dst_dir_fd=self.top)


def _own(name: str, parent: int) -> None:
    """Give a directory its rights back, which its process may have taken away."""
    with suppress(PermissionError):
        os.chmod(name, _PRIVATE, dir_fd=parent)


def _emptied(top: int, moved: _Moved) -> bool:
    """Empty every directory at the top once, and remove it; whether another round has something to do."""
    went = False
    for name in _sorted_out(top, None):
        with suppress(OSError):
            _own(name, top)
            inner = os.open(name, _OPEN, dir_fd=top)
            try:
                _sorted_out(inner, moved)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)
            went = True
    return went


def _sorted_out(directory: int, moved: _Moved | None) -> list[str]:
    """Remove all files of a directory; its directories are moved to the top, or their names are given."""
    found = []
    with os.scandir(directory) as entries:
        for entry in list(entries):
            with suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.name, dir_fd=directory)
                elif moved is None:
                    found.append(entry.name)
                else:
                    moved.take(entry.name, directory)
    return found
