"""A system call filter (seccomp): no connections, no access to other processes, no changes to modes and owners of files.

A network namespace does not block sockets in the file system, such as those of a database or of Docker, and many containers
do not grant namespaces. Seccomp is available nearly everywhere. Creating a socket is allowed, because libraries do so without
using it; it cannot connect. Socket pairs, which connect a process with its own children, work.

A process with a GPU may bind and listen, or CUDA would not start: its driver opens an abstract Unix socket for other processes
with the same GPU. Such a process creates Unix sockets alone, and accepts no connection.

Landlock does not control modes, owners, times and attributes of files that the user owns. Calls that change them do nothing
and return success, since libraries make them routinely.
"""

import ctypes
import errno
import os
import platform
import struct

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_LOAD, _EQUAL, _AT_LEAST, _HAS_ANY, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF instructions
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT, _ARGUMENT_BYTES = 0, 4, 16, 8  # offsets in struct seccomp_data
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_OTHER_NUMBERS = 0x40000000
"""From this number on x86-64 has a second set of numbers for the same calls (x32)."""

REFUSED = {
    "connect": errno.ECONNREFUSED,
    **dict.fromkeys(("bind", "listen", "accept", "accept4", "sendmsg", "sendmmsg"), errno.EPERM),
    **dict.fromkeys(("io_uring_setup", "ptrace", "process_vm_readv", "process_vm_writev"), errno.EPERM),
    **dict.fromkeys(("pidfd_getfd", "process_madvise", "kcmp", "perf_event_open"), errno.EPERM),
    **dict.fromkeys(("add_key", "request_key", "keyctl"), errno.EPERM),
    **dict.fromkeys(("inotify_add_watch", "fanotify_init"), errno.EPERM),  # the names of others' files
    # New namespaces give all capabilities back, and with them the parts of the kernel in which most faults are found.
    **dict.fromkeys(("unshare", "setns", "chroot", "mount", "umount2", "pivot_root"), errno.EPERM),
    **dict.fromkeys(
        ("fsopen", "fsconfig", "fsmount", "fspick", "open_tree", "move_mount", "mount_setattr"), errno.EPERM
    ),
    **dict.fromkeys(("bpf", "userfaultfd", "open_by_handle_at"), errno.EPERM),
    "clone3": errno.ENOSYS,  # its flags lie in memory, where a filter cannot see them; libraries then use clone
}
"""The error of each refused call. ``io_uring`` would bypass the filter. ``pidfd_open`` is allowed, because libraries use it to
wait for their children; calls that access a process through such a descriptor are refused."""
REFUSED_OF_OTHERS = {"sendto": 4, "move_pages": 0, "migrate_pages": 0, "get_robust_list": 0, "prlimit64": 0}
"""Calls that are refused if this argument is not zero: a destination address, or the id of another process."""
_NAMESPACES = 0x7E020000
"""Flags of ``clone`` for new namespaces, CLONE_NEW... of <linux/sched.h>."""
_OF_CUDA = ("bind", "listen")
_UNIX = 1
"""AF_UNIX of <linux/socket.h>."""

_NEWER = {
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "mount_setattr": 442,
}
"""Calls with one number on all processors."""
NUMBERS = {
    "x86_64": _NEWER
    | {"clone": 56, "pivot_root": 155, "chroot": 161, "mount": 165, "umount2": 166, "unshare": 272}
    | {"open_by_handle_at": 304, "setns": 308, "bpf": 321, "userfaultfd": 323}
    | {
        "socket": 41,
        "connect": 42,
        "accept": 43,
        "sendto": 44,
        "sendmsg": 46,
        "bind": 49,
        "listen": 50,
        "ptrace": 101,
    }
    | {
        "inotify_add_watch": 254,
        "fanotify_init": 300,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "migrate_pages": 256,
        "get_robust_list": 274,
    }
    | {"move_pages": 279, "accept4": 288, "perf_event_open": 298, "prlimit64": 302, "sendmmsg": 307}
    | {"process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312}
    | {"io_uring_setup": 425, "pidfd_getfd": 438, "process_madvise": 440},
    "aarch64": _NEWER
    | {"umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "unshare": 97, "clone": 220}
    | {"open_by_handle_at": 265, "setns": 268, "bpf": 280, "userfaultfd": 282}
    | {
        "inotify_add_watch": 27,
        "get_robust_list": 100,
        "ptrace": 117,
        "fanotify_init": 262,
        "socket": 198,
        "bind": 200,
        "listen": 201,
        "accept": 202,
        "connect": 203,
    }
    | {"sendto": 206, "sendmsg": 211, "add_key": 217, "request_key": 218, "keyctl": 219, "migrate_pages": 238}
    | {"move_pages": 239, "perf_event_open": 241, "accept4": 242, "prlimit64": 261, "sendmmsg": 269}
    | {"process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272}
    | {"io_uring_setup": 425, "pidfd_getfd": 438, "process_madvise": 440},
}
"""Numbers of the calls that the filter looks at, by processor."""
_PROCESSORS = {
    # chmod fchmod chown fchown lchown utime setxattr.. removexattr.. utimes fchownat futimesat fchmodat utimensat
    "x86_64": (0xC000003E, (90, 91, 92, 93, 94, 132, 188, 189, 190, 197, 198, 199, 235, 260, 261, 268, 280)),
    # setxattr.. removexattr.. fchmod fchmodat fchownat fchown utimensat
    "aarch64": (0xC00000B7, (5, 6, 7, 14, 15, 16, 52, 53, 54, 55, 88)),
}
"""By processor: its number in <linux/audit.h>, and the numbers of calls that do nothing."""
_NOT_CARRIED_OUT = (452, 463, 466, 469)
"""Calls that do nothing, with the same number on all processors: fchmodat2 setxattrat removexattrat file_setattr."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def restrict(*, has_gpu: bool = False) -> None:
    """Refuse these calls for this thread and everything that it starts. The thread must have ``no_new_privs``.

    Args:
        has_gpu: whether CUDA must be able to start.

    Raises:
        OSError: the kernel refuses the filter, or the processor is unknown.
    """
    processor = platform.machine()
    if processor not in _PROCESSORS:
        raise OSError(errno.ENOSYS, f"the system call numbers of '{processor}' are unknown")
    code = _program(NUMBERS[processor], *_PROCESSORS[processor], has_gpu=has_gpu)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _program(numbers: dict[str, int], architecture: int, not_carried_out: tuple[int, ...], *, has_gpu: bool) -> bytes:
    """Assemble the filter. An instruction is a code, the jumps for true and for false, and an operand."""
    instructions = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _OTHER_NUMBERS),
        (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
    ]
    for name, answer in REFUSED.items():
        if not (has_gpu and name in _OF_CUDA):
            instructions += [(_EQUAL, 0, 1, numbers[name]), (_RETURN, 0, 0, _ERROR | answer)]
    instructions += [
        (_EQUAL, 0, 3, numbers["clone"]),
        (_LOAD, 0, 0, _ARGUMENTS_AT),
        (_HAS_ANY, 0, 1, _NAMESPACES),
        (_RETURN, 0, 0, _ERROR | errno.EPERM),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if has_gpu:
        instructions += _unless(numbers["socket"], _ARGUMENTS_AT, _UNIX, errno.EAFNOSUPPORT)
    for number in (*not_carried_out, *_NOT_CARRIED_OUT):
        instructions += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERROR)]
    for name, argument in REFUSED_OF_OTHERS.items():
        instructions += _unless(numbers[name], _ARGUMENTS_AT + argument * _ARGUMENT_BYTES, 0, errno.EPERM)
    instructions.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)


def _unless(number: int, at: int, allowed: int, answer: int) -> list[tuple[int, int, int, int]]:
    """Refuse a call unless its argument has this value, below 2 to the 32; the filter reads the argument in two halves."""
    return [
        (_EQUAL, 0, 6, number),
        (_LOAD, 0, 0, at),
        (_EQUAL, 0, 2, allowed),
        (_LOAD, 0, 0, at + _ARGUMENT_BYTES // 2),
        (_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _ERROR | answer),
        (_RETURN, 0, 0, _ALLOW),
    ]
