"""The filter by itself, without the other restrictions: what it refuses, and that its numbers are those of the kernel."""

import errno
import json
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from worker.sandbox.system_calls import NUMBERS, REFUSED, REFUSED_OF_OTHERS

HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
"""Where Debian's ``linux-libc-dev`` keeps the kernel's own numbers."""
LOOKING = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd"),
    *("process_madvise", "kcmp", "perf_event_open"),
)
TRY = """
import ctypes, json, sys
from worker.sandbox import privileges, system_calls
calls = json.loads(sys.argv[1])
privileges.forgo_new_privileges()
system_calls.restrict()
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
    if sys.platform != "linux":
        pytest.skip("the filter is Linux's")


def answers(*calls: tuple[int, ...]) -> list[int]:
    """The error of each call, a number and its arguments, 0 where it was carried out."""
    command = [sys.executable, "-S", "-c", TRY, json.dumps(calls)]
    said: list[int] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60).stdout)
    return said


@pytest.mark.parametrize("processor", HEADERS)
def test_the_numbers_are_the_kernels(processor: str) -> None:
    if not HEADERS[processor].exists():
        pytest.skip(f"there is no {HEADERS[processor]}; Debian's linux-libc-dev brings it")
    kernels = dict(re.findall(r"#define __NR_(\w+)\s+(\d+)", HEADERS[processor].read_text()))
    assert {name: str(number) for name, number in NUMBERS[processor].items()} == {
        name: kernels[name] for name in (*REFUSED, *REFUSED_OF_OTHERS, "socket", "clone")
    }


def test_calls_are_refused_whatever_they_ask() -> None:
    numbers = NUMBERS[platform.machine()]
    assert answers(*((numbers[name], 0, 0, 0, 0, 0, 0) for name in REFUSED)) == list(REFUSED.values())


def test_no_call_looks_into_a_process() -> None:
    assert answers(*((NUMBERS[platform.machine()][name], 0, 0, 0, 0, 0, 0) for name in LOOKING)) == [errno.EPERM] * len(
        LOOKING
    )


def test_calls_that_take_a_process_work_for_the_own_one_alone() -> None:
    numbers = NUMBERS[platform.machine()]
    own, others = (
        answers(*((numbers[name], process, 0, 0, 0, 0, 0) for name in ("move_pages", "prlimit64")))
        for process in (0, 1)
    )
    assert own == [0, 0]
    assert others == [errno.EPERM, errno.EPERM]


@pytest.mark.parametrize("flag", [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000])
def test_no_process_begins_in_a_namespace_of_its_own(flag: int) -> None:
    assert answers((NUMBERS[platform.machine()]["clone"], flag | 17, 0, 0, 0, 0, 0)) == [errno.EPERM]
