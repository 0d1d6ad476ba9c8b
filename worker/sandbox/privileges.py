"""Permanent restrictions of the current process: privileges, shared namespaces, and resource limits.

Constants are those of <linux/prctl.h>, <linux/sched.h> and <linux/capability.h>.
"""

import ctypes
import os
import resource
import signal
import sys
from contextlib import suppress

from worker.sandbox.libc import call

_PDEATHSIG, _SET_NAME, _NO_NEW_PRIVS, _BOUNDING_DROP, _AMBIENT, _AMBIENT_CLEAR = 1, 15, 38, 24, 47, 4
_NEW_USER, _NEW_PROCESSES, _NEW_NETWORK, _NEW_IPC, _NEW_MOUNTS = 0x10000000, 0x20000000, 0x40000000, 0x08000000, 0x20000
_HARMLESS_MOUNT = 2 | 4 | 8  # MS_NOSUID, MS_NODEV, MS_NOEXEC of <linux/mount.h>
_CAPABILITY_VERSION = 0x20080522
_GROUP = "axformer-job-"
_FIRST_TO_GO = "800"
"""When memory runs out, the kernel kills this process before the database and the worker; 1000 is the maximum."""


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends, for whatever reason."""
    _prctl(_PDEATHSIG, signal.SIGKILL)


def be_called(name: str) -> None:
    """Set this process's name in process lists; Linux shows the first 15 bytes."""
    if sys.platform == "linux":
        _prctl(_SET_NAME, name.encode())


def forgo_new_privileges() -> None:
    """Prevent programs that this process runs from gaining privileges, whatever their mode."""
    _prctl(_NO_NEW_PRIVS, 1)


def separate() -> None:
    """Leave the namespaces of users, processes, mounts, network and shared memory; the next child is the first process in them.

    Raises:
        OSError: the system does not grant namespaces, or not to this user.
    """
    user, group = os.geteuid(), os.getegid()
    call("unshare", _NEW_USER | _NEW_PROCESSES | _NEW_MOUNTS | _NEW_NETWORK | _NEW_IPC)
    with suppress(OSError):  # a superuser with few rights may not map its id; its files stay accessible
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")


def see_own_processes() -> None:
    """Have ``/proc`` show the processes of the new namespace alone, by their numbers there, by which CUDA looks its threads up.

    A container that hides parts of ``/proc`` does not allow it; then ``/proc`` shows what it showed before.
    """
    with suppress(OSError):
        call("mount", b"proc", b"/proc", b"proc", ctypes.c_ulong(_HARMLESS_MOUNT), None)


def drop_capabilities() -> None:
    """Drop all capabilities, including those that executed programs would get."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = 0
    while (
        libc.prctl(_BOUNDING_DROP, number, 0, 0, 0) == 0
    ):  # fails after the last capability, or without the right to drop any
        number += 1
    libc.prctl(_AMBIENT, _AMBIENT_CLEAR, 0, 0, 0)
    header, nothing = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    call("capset", ctypes.byref(header), ctypes.byref(nothing))


def limit(file_bytes: int, open_files: int, processes: int) -> None:
    """Limit the resources of the process; it cannot raise the limits again.

    The address space is not limited, since CUDA reserves more of it than any machine has memory.

    Args:
        file_bytes: size of the largest file that it may write.
        open_files: most open files at a time.
        processes: most processes and threads of this user, counted in its user namespace. The kernel does not count those of
            root, for whom there is :func:`count_in_group`.
    """
    for kind, most in (
        (resource.RLIMIT_CORE, 0),  # a dump would hold the model
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, open_files),
        (resource.RLIMIT_NPROC, processes),
    ):
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def is_uncounted() -> bool:
    """Whether this user is the machine's root, whose processes ``limit`` does not bound, in whatever namespace."""
    with open("/proc/self/uid_map") as file:  # noqa: PTH123 - the launcher imports little
        return os.geteuid() == 0 and file.readline().split()[:2] == ["0", "0"]


def count_in_group(processes: int) -> None:
    """Bound the processes and threads of this process and all that it starts by a control group of its own.

    Raises:
        OSError: this process may make none, or the machine does not count processes in it.
    """
    with open("/proc/self/cgroup") as file:  # noqa: PTH123 - the launcher imports little
        parent = counted_in(file.read())
    for name in os.listdir(parent):  # noqa: PTH208
        if name.startswith(_GROUP) and not os.path.exists(f"/proc/{name.removeprefix(_GROUP)}"):  # noqa: PTH110
            with suppress(OSError):  # another process was first
                os.rmdir(f"{parent}/{name}")  # noqa: PTH106
    group = f"{parent}/{_GROUP}{os.getpid()}"
    os.mkdir(group)  # noqa: PTH102
    try:
        for name, value in (("pids.max", processes), ("cgroup.procs", os.getpid())):
            _write(f"{group}/{name}", str(value))
    except OSError:
        os.rmdir(group)  # noqa: PTH106
        raise


def counted_in(own: str, root: str = "/sys/fs/cgroup") -> str:
    """The directory below which a new control group counts processes.

    It is the own group in version 1. In version 2 a group that holds processes hands no controller down, so the new group lies
    beside that of this process, in the one above.

    Args:
        own: the groups of this process, as ``/proc/self/cgroup`` has them.
        root: where control groups are mounted.
    """
    places = {kinds: path for _, kinds, path in (line.split(":", 2) for line in own.splitlines())}
    if "pids" in places:
        return f"{root}/pids{places['pids']}"
    here = places.get("", "/")
    for place in (here, here.rpartition("/")[0] or "/"):
        with suppress(OSError), open(f"{root}{place}/cgroup.subtree_control") as file:  # noqa: PTH123 - as above
            if "pids" in file.read().split():
                return f"{root}{place}"
    return f"{root}{here}"


def go_first() -> None:
    """Make this process the first that the kernel kills when memory runs out."""
    try:
        _write("/proc/self/oom_score_adj", _FIRST_TO_GO)
    except OSError:  # running matters more than the order of kills
        return


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123 - the launcher imports little
        file.write(text)


def _prctl(option: int, value: int | bytes) -> None:
    call("prctl", option, ctypes.c_ulong(value) if isinstance(value, int) else value, 0, 0, 0)
