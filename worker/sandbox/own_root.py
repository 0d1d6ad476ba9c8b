"""A root directory of the process's own, which holds nothing but what the process may read and write.

Landlock governs neither ``stat`` nor ``access`` nor ``readlink``, which tell existence, size and times of any file. Constants
are those of <linux/mount.h> and <linux/fcntl.h>.
"""

import ctypes
import errno
import os
import platform
from collections.abc import Iterable
from contextlib import suppress

from worker.sandbox.libc import call

_BIND, _WITH_ALL_BELOW, _IN_NO_OTHER, _DETACH = 0x1000, 0x4000, 0x20000, 2
_NO_SUID, _NO_DEVICES = 2, 4
_SET_ATTRIBUTES, _RELATIVE_TO_HERE, _AND_ALL_BELOW, _READ_ONLY = 442, -100, 0x8000, 1
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


def enter(readable: Iterable[str], changeable: Iterable[str], home: str) -> None:
    """Leave the machine's root for one with these paths under their names, and the links that lead to them.

    Args:
        readable: files and directories, which nobody changes there. Missing ones are left out.
        changeable: directories and devices, which their owners may change.
        home: a directory that the process may write to, in which the new root is put together.

    Raises:
        OSError: the system does not allow it; the process has the machine's root as before.
    """
    was_in, root = os.getcwd(), f"{home}/.root"  # noqa: PTH109 - the launcher imports little
    os.mkdir(root)  # noqa: PTH102
    try:
        _mount("none", root, "tmpfs", _NO_SUID | _NO_DEVICES, "mode=755")
        try:
            _mount("none", root, None, _IN_NO_OTHER)
            for path in readable:
                _show(path, root, is_read_only=True)
            for path in changeable:
                _show(path, root, is_read_only=False)
            _forbid_changes(root, 0)
            _pivot(root)
        except OSError:
            call("umount2", root.encode(), _DETACH)
            raise
        finally:
            with suppress(OSError):  # it may not be there any more
                os.chdir(was_in)
    finally:
        os.rmdir(root)  # noqa: PTH106


def _show(path: str, root: str, *, is_read_only: bool) -> None:
    """Mount a path, if there is one, below the new root."""
    try:
        os.stat(path)  # noqa: PTH116
        there = _followed(os.path.abspath(path), root)  # noqa: PTH100
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    here, is_directory = root + there, os.path.isdir(there)  # noqa: PTH112
    if is_read_only and os.path.exists(here) and os.path.samefile(here, there):  # noqa: PTH110, PTH121
        return  # it is in a directory that is there already
    os.makedirs(here if is_directory else os.path.dirname(here), exist_ok=True)  # noqa: PTH103, PTH120
    if not os.path.exists(here):  # noqa: PTH110
        os.close(os.open(here, os.O_CREAT | os.O_RDONLY))
    _mount(there, here, None, _BIND | _WITH_ALL_BELOW)
    if is_read_only:
        _forbid_changes(here, _AND_ALL_BELOW)


def _followed(path: str, root: str) -> str:
    """Where a path leads; the links on the way are made below the new root, too."""
    parent, name = os.path.split(path.rstrip("/"))
    if not name:
        return "/"
    at = _followed(parent, root)
    if name in (".", ".."):
        return at if name == "." else os.path.dirname(at)  # noqa: PTH120
    here = os.path.join(at, name)  # noqa: PTH118
    if not os.path.islink(here):  # noqa: PTH114
        return here
    target = os.readlink(here)  # noqa: PTH115
    if not os.path.lexists(root + here):
        os.makedirs(root + at, exist_ok=True)  # noqa: PTH103
        os.symlink(target, root + here)  # noqa: PTH211
    return _followed(os.path.join(at, target), root)  # noqa: PTH118


def _pivot(root: str) -> None:
    number = _PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    os.chdir(root)
    call("syscall", ctypes.c_long(number), b".", b".")  # the old root then lies over the new one
    call("umount2", b".", _DETACH)


def _forbid_changes(path: str, flags: int) -> None:
    attributes = (ctypes.c_uint64 * 4)(_READ_ONLY)
    arguments = (ctypes.c_int(_RELATIVE_TO_HERE), path.encode(), ctypes.c_uint(flags))
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    call("syscall", ctypes.c_long(_SET_ATTRIBUTES), *arguments, ctypes.byref(attributes), size)


def _mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    words = [None if word is None else word.encode() for word in (source, target, kind)]
    call("mount", *words, ctypes.c_ulong(flags), options.encode())
