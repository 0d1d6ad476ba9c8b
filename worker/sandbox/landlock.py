"""Landlock: the kernel limits a process and its descendants to the named files. It needs no privileges.

It applies to the calling thread, so it must be set up before any library is imported that starts threads.
Constants are those of <linux/landlock.h>.
"""

import ctypes
import os
from collections.abc import Iterable

from worker.sandbox.libc import call

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446  # system call numbers, the same on all processors
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
"""The rights that a rule for anything but a directory may name."""

_SINCE = ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV))
"""Landlock versions, and the right that each added."""
_NET_VERSION, _BIND_AND_CONNECT = 4, 3
_SCOPE_VERSION, _SOCKETS_AND_SIGNALS = 6, 3
"""Abstract sockets and signals of processes outside."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """The Landlock version of this kernel, from 1.

    Raises:
        OSError: the kernel lacks Landlock, or it is turned off.
    """
    return _call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))


def restrict(listed: Iterable[str], readable: Iterable[str], writable: Iterable[str], devices: Iterable[str]) -> int:
    """Limit this thread and everything that it starts to these files. The thread must have ``no_new_privs``.

    Args:
        listed: directories that may be listed, with everything below, but not read.
        readable: files and directories to read and to execute. Missing ones are ignored.
        writable: directories with all rights.
        devices: devices to read, write and control.

    Returns:
        The version of Landlock; from 6 on, processes outside cannot be signalled either.

    Raises:
        OSError: the kernel refuses.
    """
    supported = version()
    handled = _ALL_OF_FIRST
    for since, right in _SINCE:
        handled |= right if supported >= since else 0
    rules = _Ruleset(
        handled,
        _BIND_AND_CONNECT if supported >= _NET_VERSION else 0,
        _SOCKETS_AND_SIGNALS if supported >= _SCOPE_VERSION else 0,
    )
    size = 8 * (1 + (supported >= _NET_VERSION) + (supported >= _SCOPE_VERSION))
    ruleset = _call(_CREATE, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for paths, rights in ((listed, _READ_DIR), (readable, _READ), (writable, _READ | _CHANGE), (devices, _DEVICE)):
            for path in paths:
                _allow(ruleset, path, rights & handled)
        _call(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)
    return supported


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
    return call("syscall", ctypes.c_long(number), *arguments)
