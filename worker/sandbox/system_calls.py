"""A system call filter (seccomp): a process may make the calls named here, and no others.

A network namespace does not block sockets in the file system, such as those of a database or of Docker, and many containers
do not grant namespaces. Seccomp is available nearly everywhere. Only Unix sockets are created, because libraries do so without
using them, and none connects. Socket pairs, which connect a process with its own children, work.

A process with a GPU may bind and listen, or CUDA would not start: its driver opens an abstract Unix socket for other processes
with the same GPU. It accepts no connection.

Landlock does not control modes, owners, times and attributes of files that the user owns. Calls that change them do nothing
and return success, since libraries make them routinely.

A call that is not named fails; nothing is killed for it. One that Linux added from 5.1 on (``io_uring``, ``clone3``,
``fsopen``, ...) answers ENOSYS as an earlier kernel does, so libraries use what they used before. All others answer EPERM.
"""

import ctypes
import errno
import platform
import struct

from worker.sandbox.libc import call

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06  # BPF instructions
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT, _ARGUMENT_BYTES = 0, 4, 16, 8  # offsets in struct seccomp_data
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
PROCESSORS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The processors whose numbers are known, with theirs in <linux/audit.h>."""
NEWER = 424
"""The first number of the calls since Linux 5.1, which are the same on all processors."""
_WORD, _POINTER = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
"""The bits of an argument that the kernel looks at; above a word there may be anything."""
_NEW_NAMESPACES = 0x7E020000
"""Flags of ``clone``, CLONE_NEW... of <linux/sched.h>. Namespaces give all capabilities back."""
_UNIX = 1
"""AF_UNIX of <linux/socket.h>."""

GRANTED = """
read 0 63 write 1 64 readv 19 65 writev 20 66 pread64 17 67 pwrite64 18 68 preadv 295 69 pwritev 296 70
preadv2 327 286 pwritev2 328 287 lseek 8 62 open 2 - openat 257 56 openat2 437 437 creat 85 - close 3 57
close_range 436 436 stat 4 - fstat 5 80 lstat 6 - newfstatat 262 79 statx 332 291 access 21 - faccessat 269 48
faccessat2 439 439 readlink 89 - readlinkat 267 78 getdents 78 - getdents64 217 61 getcwd 79 17 chdir 80 49
fchdir 81 50 mkdir 83 - mkdirat 258 34 rmdir 84 - unlink 87 - unlinkat 263 35 rename 82 - renameat 264 38
renameat2 316 276 link 86 - linkat 265 37 symlink 88 - symlinkat 266 36 mknod 133 - mknodat 259 33 truncate 76 45
ftruncate 77 46 fallocate 285 47 fsync 74 82 fdatasync 75 83 sync_file_range 277 84 fadvise64 221 223
readahead 187 213 cachestat 451 451 flock 73 32 fcntl 72 25 ioctl 16 29 dup 32 23 dup2 33 - dup3 292 24 umask 95 166
statfs 137 43 fstatfs 138 44 sendfile 40 71 copy_file_range 326 285 splice 275 76 tee 276 77 pipe 22 - pipe2 293 59
getxattr 191 8 lgetxattr 192 9 fgetxattr 193 10 listxattr 194 11 llistxattr 195 12 flistxattr 196 13
getxattrat 464 464 listxattrat 465 465 file_getattr 468 468 memfd_create 319 279

poll 7 - ppoll 271 73 select 23 - pselect6 270 72 epoll_create 213 - epoll_create1 291 20 epoll_ctl 233 21
epoll_wait 232 - epoll_pwait 281 22 epoll_pwait2 441 441 eventfd 284 - eventfd2 290 19 signalfd 282 - signalfd4 289 74
timerfd_create 283 85 timerfd_settime 286 86 timerfd_gettime 287 87 futex 202 98 futex_waitv 449 449
futex_wake 454 454 futex_wait 455 455 futex_requeue 456 456 shutdown 48 210 getsockname 51 204 getpeername 52 205
getsockopt 55 209 recvfrom 45 207 recvmsg 47 212 recvmmsg 299 243

mmap 9 222 munmap 11 215 mprotect 10 226 mremap 25 216 madvise 28 233 brk 12 214 msync 26 227 mincore 27 232
mlock 149 228 mlock2 325 284 munlock 150 229 mlockall 151 230 munlockall 152 231 membarrier 324 283 mbind 237 235
get_mempolicy 239 236 set_mempolicy 238 237 set_mempolicy_home_node 450 450 pkey_mprotect 329 288 pkey_alloc 330 289
pkey_free 331 290 mseal 462 462 map_shadow_stack 453 453

clock_gettime 228 113 clock_getres 229 114 clock_nanosleep 230 115 nanosleep 35 101 gettimeofday 96 169 time 201 -
times 100 153 getitimer 36 102 setitimer 38 103 alarm 37 - timer_create 222 107 timer_settime 223 110
timer_gettime 224 108 timer_getoverrun 225 109 timer_delete 226 111 pause 34 -

rt_sigaction 13 134 rt_sigprocmask 14 135 rt_sigreturn 15 139 rt_sigpending 127 136 rt_sigsuspend 130 133
rt_sigtimedwait 128 137 rt_sigqueueinfo 129 138 rt_tgsigqueueinfo 297 240 sigaltstack 131 132 kill 62 129
tkill 200 130 tgkill 234 131 pidfd_open 434 434 pidfd_send_signal 424 424 restart_syscall 219 128

fork 57 - vfork 58 - execve 59 221 exit 60 93 exit_group 231 94 wait4 61 260 waitid 247 95 set_tid_address 218 96
set_robust_list 273 99 rseq 334 293 arch_prctl 158 - prctl 157 167 getpid 39 172 getppid 110 173 gettid 186 178
getpgid 121 155 getpgrp 111 - getsid 124 156 setpgid 109 154 setsid 112 157 getuid 102 174 geteuid 107 175
getgid 104 176 getegid 108 177 getresuid 118 148 getresgid 120 150 getgroups 115 158 capget 125 90 getrlimit 97 163
setrlimit 160 164 getrusage 98 165 getpriority 140 141 ioprio_get 252 31 sched_yield 24 124 sched_setaffinity 203 122
sched_getaffinity 204 123 sched_setscheduler 144 119 sched_getscheduler 145 120 sched_setparam 142 118
sched_getparam 143 121 sched_setattr 314 274 sched_getattr 315 275 sched_get_priority_max 146 125
sched_get_priority_min 147 126 sched_rr_get_interval 148 127 sysinfo 99 179 uname 63 160 getcpu 309 168
getrandom 318 278 uretprobe 335 - uprobe 336 -
"""
"""Calls that are carried out whatever they ask: name, number on x86-64, number on ARM. Files and sockets, waiting, memory,
time, signals, the process itself. ``uretprobe`` and ``uprobe`` are the kernel's own, when somebody traces the process."""
CHECKED = """
socket 41 198 socketpair 53 199 sendto 44 206 clone 56 220 prlimit64 302 261 get_robust_list 274 100 move_pages 279 239
migrate_pages 256 238 setpriority 141 140 ioprio_set 251 30
"""
"""Calls that are carried out if one argument is harmless."""
OF_CUDA = "bind 49 200 listen 50 201 setsockopt 54 208"
"""Calls that are carried out with a GPU alone."""
NOT_CARRIED_OUT = """
chmod 90 - fchmod 91 52 chown 92 - fchown 93 55 lchown 94 - utime 132 - setxattr 188 5 lsetxattr 189 6 fsetxattr 190 7
removexattr 197 14 lremovexattr 198 15 fremovexattr 199 16 utimes 235 - fchownat 260 54 futimesat 261 -
fchmodat 268 53 utimensat 280 88 fchmodat2 452 452 setxattrat 463 463 removexattrat 466 466 file_setattr 469 469
"""
"""Calls that do nothing and return success."""
_CHECKS = {
    "socket": (0, _WORD, _UNIX, errno.EAFNOSUPPORT),
    "socketpair": (0, _WORD, _UNIX, errno.EAFNOSUPPORT),
    "sendto": (4, _POINTER, 0, errno.EPERM),  # a destination
    "clone": (0, _NEW_NAMESPACES, 0, errno.EPERM),
    "setpriority": (1, _WORD, 0, errno.EPERM),
    "ioprio_set": (1, _WORD, 0, errno.EPERM),
    **dict.fromkeys(("prlimit64", "get_robust_list", "move_pages", "migrate_pages"), (0, _WORD, 0, errno.EPERM)),
}
"""For each of :data:`CHECKED` an argument, the bits of it that matter, what they must be, and the error if they are not. The
last six take the id of a process, where 0 is the own one."""

Instruction = tuple[int, int, int, int]
"""A code, the jumps for true and for false, and an operand."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def numbers(calls: str, processor: str) -> dict[str, int]:
    """The numbers of those calls of a table that a processor has."""
    words, at = calls.split(), 1 + list(PROCESSORS).index(processor)
    return {name: int(number) for name, number in zip(words[::3], words[at::3], strict=True) if number != "-"}


def restrict(*, has_gpu: bool = False) -> None:
    """Limit this thread and everything that it starts to these calls. The thread must have ``no_new_privs``.

    Args:
        has_gpu: whether CUDA must be able to start.

    Raises:
        OSError: the kernel refuses the filter, or the processor is unknown.
    """
    processor = platform.machine()
    if processor not in PROCESSORS:
        raise OSError(errno.ENOSYS, f"the system call numbers of '{processor}' are unknown")
    instructions: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, PROCESSORS[processor]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    for calls, answer in ((GRANTED, _ALLOW), (OF_CUDA if has_gpu else "", _ALLOW), (NOT_CARRIED_OUT, _ERROR)):
        for number in numbers(calls, processor).values():
            instructions += answered(number, answer)
    for name, number in numbers(CHECKED, processor).items():
        instructions += _checked(number, *_CHECKS[name])
    last = [(_AT_LEAST, 0, 1, NEWER), (_RETURN, 0, 0, _ERROR | errno.ENOSYS), (_RETURN, 0, 0, _ERROR | errno.EPERM)]
    install([*instructions, *last])


def install(instructions: list[Instruction]) -> None:
    """Put a filter in force.

    Raises:
        OSError: the kernel refuses it.
    """
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(instructions), ctypes.addressof(buffer))
    call("prctl", _PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0)


def answered(number: int, answer: int) -> list[Instruction]:
    """Give a call, whose number is loaded, one answer."""
    return [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, answer)]


def _checked(number: int, argument: int, bits: int, value: int, error: int) -> list[Instruction]:
    """Allow a call if these bits of an argument have this value; the filter reads it in two halves."""
    at = _ARGUMENTS_AT + argument * _ARGUMENT_BYTES
    return [
        (_EQUAL, 0, 8, number),
        (_LOAD, 0, 0, at),
        (_AND, 0, 0, bits & _WORD),
        (_EQUAL, 0, 3, value),
        (_LOAD, 0, 0, at + _ARGUMENT_BYTES // 2),
        (_AND, 0, 0, bits >> 32),
        (_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _ERROR | error),
        (_RETURN, 0, 0, _ALLOW),
    ]
