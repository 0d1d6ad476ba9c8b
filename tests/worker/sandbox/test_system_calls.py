"""The filter by itself, without the other restrictions: what it grants, and that its numbers are those of the kernel."""

import errno
import json
import platform
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.worker.sandbox.dangerous import DANGEROUS
from worker.sandbox.system_calls import CHECKED, GRANTED, NEWER, NOT_CARRIED_OUT, OF_CUDA, PROCESSORS, numbers

HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
"""Where Debian's ``linux-libc-dev`` keeps the kernel's own numbers."""
TABLES = (GRANTED, CHECKED, OF_CUDA, NOT_CARRIED_OUT)
HARMLESS = {"getpid", "gettid", "getuid", "sched_yield", "umask", "getppid", "times"}
"""Calls that succeed whatever they are asked."""
UNKNOWN = (460, 500, 4000, 0x40000027)
"""Numbers of a security module's call, of calls that there may be one day, and of a call by its second number on x86-64."""
TRY = """
import ctypes, json, sys
from worker.sandbox import privileges, system_calls
calls = json.loads(sys.argv[1])
privileges.forgo_new_privileges()
system_calls.restrict(has_gpu=json.loads(sys.argv[2]))
libc = ctypes.CDLL(None, use_errno=True)
answers = []
for call in calls:
    ctypes.set_errno(0)
    libc.syscall(*map(ctypes.c_long, call))
    answers.append(ctypes.get_errno())
print(json.dumps(answers))
"""


@pytest.fixture(autouse=True)
def on_linux() -> None:
    if sys.platform != "linux" or platform.machine() not in PROCESSORS:
        pytest.skip("the filter is Linux's, on processors whose numbers are known")


def answers(*calls: tuple[int, ...], has_gpu: bool = False) -> list[int]:
    """The error of each call, a number and its arguments, 0 where it was carried out."""
    command = [sys.executable, "-S", "-c", TRY, json.dumps(calls), json.dumps(has_gpu)]
    said: list[int] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60).stdout)
    return said


def here(calls: str) -> dict[str, int]:
    return numbers(calls, platform.machine())


def refused_with(number: int) -> int:
    return errno.ENOSYS if number >= NEWER else errno.EPERM


def kernels(processor: str) -> dict[str, int]:
    """The numbers in the kernel's headers; on ARM some have a second name there."""
    text = HEADERS[processor].read_text()
    called = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text))
    others = {
        name: called[second]
        for name, second in re.findall(r"#define __NR_(\w+) __NR3264_(\w+)", text)
        if second in called
    }
    return {name: int(number) for name, number in (called | others).items() if name != "syscalls"}


@pytest.mark.parametrize("processor", HEADERS)
def test_the_numbers_are_the_kernels(processor: str) -> None:
    if not HEADERS[processor].exists():
        pytest.skip(f"there is no {HEADERS[processor]}; Debian's linux-libc-dev brings it")
    known = kernels(processor)
    for name, number in numbers("".join((*TABLES, DANGEROUS)), processor).items():
        if name in known:
            assert (name, number) == (name, known[name])
        else:  # younger than the headers; the two for tracing have their numbers on x86-64 alone
            assert number > max(known.values()) or (processor, number) in (("x86_64", 335), ("x86_64", 336))


@pytest.mark.parametrize("processor", PROCESSORS)
def test_no_dangerous_call_is_on_a_list_and_none_is_on_two(processor: str) -> None:
    listed = [number for calls in (*TABLES, DANGEROUS) for number in numbers(calls, processor).values()]
    assert len(listed) == len(set(listed))


def test_a_call_that_is_not_named_is_refused_whatever_it_asks() -> None:
    calls = [*here(DANGEROUS).values(), *UNKNOWN, *here(OF_CUDA).values()]
    assert answers(*((number, *[0] * 6) for number in calls)) == [refused_with(number) for number in calls]


def test_a_call_that_is_named_is_carried_out_or_at_least_looks_as_if() -> None:
    calls = [number for name, number in here(GRANTED).items() if name in HARMLESS] + list(
        here(NOT_CARRIED_OUT).values()
    )
    assert answers(*((number, *[0] * 6) for number in calls)) == [0] * len(calls)


def test_with_a_gpu_there_are_calls_of_cuda_and_still_no_connection() -> None:
    calls = [here(OF_CUDA)[name] for name in ("bind", "listen", "setsockopt")]
    assert answers(*((number, -1, *[0] * 5) for number in calls), has_gpu=True) == [errno.EBADF] * 3
    calls = [here(DANGEROUS)[name] for name in ("connect", "accept", "accept4", "sendmsg")]
    assert answers(*((number, -1, *[0] * 5) for number in calls), has_gpu=True) == [errno.EPERM] * 4


@pytest.mark.parametrize("call", ["socket", "socketpair"])
def test_there_are_unix_sockets_and_no_others(call: str) -> None:
    number, unix = here(CHECKED)[call], int(socket.AF_UNIX)
    families = [family for family in range(64) if family != unix]
    tried = answers(*((number, family, kind, 0, 0, 0, 0) for family in families for kind in (1, 2, 3)))
    assert tried == [errno.EAFNOSUPPORT] * len(tried)
    others = 1 << 32 | unix  # the kernel looks at the lower half of a whole number alone, and so does the filter
    one, another = answers((number, unix, 1, 0, 0, 0, 0), (number, others, 1, 0, 0, 0, 0))
    assert one == another == (0 if call == "socket" else errno.EFAULT)


@pytest.mark.parametrize("destination", [1, 1 << 32, 1 << 63 - 32])
def test_nothing_is_sent_to_an_address(destination: int) -> None:
    number = here(CHECKED)["sendto"]
    assert answers((number, -1, 0, 0, 0, 0, 0), (number, -1, 0, 0, 0, destination, 16)) == [errno.EBADF, errno.EPERM]


def test_calls_that_take_a_process_work_for_the_own_one_alone() -> None:
    calls = here(CHECKED)
    own, others = (
        answers(
            *((calls[name], process, *[0] * 5) for name in ("move_pages", "prlimit64")),
            *((calls[name], 0, process, 19, 0, 0, 0) for name in ("setpriority",)),
        )
        for process in (0, 1)
    )
    assert own == [0, 0, 0]
    assert others == [errno.EPERM] * 3
    rest = [(calls[name], 1, *[0] * 5) for name in ("migrate_pages", "get_robust_list")] + [
        (calls["ioprio_set"], 1, 1, *[0] * 4)
    ]
    assert answers(*rest) == [errno.EPERM] * 3


@pytest.mark.parametrize("flag", [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000])
def test_no_process_begins_in_a_namespace_of_its_own(flag: int) -> None:
    assert answers((here(CHECKED)["clone"], flag | 17, 0, 0, 0, 0, 0)) == [errno.EPERM]
