"""Landlock: the kernel lets a process, and all that it starts, at the named files alone. Needs no rights to set up.

It holds for the calling thread, so it comes before there are others: before any library is imported that starts some.
Constants are those of <linux/landlock.h>.
"""

import ctypes
import os
from collections.abc import Iterable

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446  # numbers of the system calls, the same on all processors
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_DIR, _MAKE_REG, _MAKE_FIFO, _MAKE_SYM = 1 << 7, 1 << 8, 1 << 10, 1 << 12
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15

_ALL_OF_FIRST = (1 << 13) - 1
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_CHANGE = _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_FIFO | _MAKE_SYM | _REFER | _TRUNCATE
_DEVICE = _READ_FILE | _WRITE_FILE | _IOCTL_DEV
_ON_FILES = _EXECUTE | _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV
"""What a rule for something that is not a directory may name."""

_SINCE = ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV))
"""Version of Landlock, and the right that it brought."""
_NET_VERSION, _BIND_AND_CONNECT = 4, 3
_SCOPE_VERSION, _SOCKETS_AND_SIGNALS = 6, 3
"""Abstract sockets, and signals, of processes outside."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Of Landlock in this kernel, from 1.

    Raises:
        OSError: it has none, or it is turned off.
    """
    return _call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))


def restrict(listed: Iterable[str], readable: Iterable[str], writable: Iterable[str], devices: Iterable[str]) -> int:
    """Take from this thread and all that it starts every file but these; it must have ``no_new_privs``.

    Args:
        listed: directories whose names may be seen, there and below, and whose files are not read.
        readable: files and directories to read and to run programs from. What does not exist is left out.
        writable: directories in which all may be done.
        devices: to read, write and control.

    Returns:
        The version of Landlock; from 6 on nobody outside can be signalled either.

    Raises:
        OSError: the kernel refuses.
    """
    found = version()
    handled = _ALL_OF_FIRST
    for since, right in _SINCE:
        handled |= right if found >= since else 0
    rules = _Ruleset(
        handled,
        _BIND_AND_CONNECT if found >= _NET_VERSION else 0,
        _SOCKETS_AND_SIGNALS if found >= _SCOPE_VERSION else 0,
    )
    size = 8 * (1 + (found >= _NET_VERSION) + (found >= _SCOPE_VERSION))
    ruleset = _call(_CREATE, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for paths, rights in ((listed, _READ_DIR), (readable, _READ), (writable, _READ | _CHANGE), (devices, _DEVICE)):
            for path in paths:
                _allow(ruleset, path, rights & handled)
        _call(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)
    return found


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - the launcher imports little
            rights &= _ON_FILES
        rule = _PathBeneath(rights, parent)
        _call(
            _ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_RULE_PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint32(0)
        )
    finally:
        os.close(parent)


def _call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
