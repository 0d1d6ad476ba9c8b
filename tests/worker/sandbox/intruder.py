"""Tries every restriction from inside, as the program of a hostile file would, and prints one JSON object with what came of
each try.

python intruder.py OUTSIDE_DIRECTORY OTHER_FILE PARENT PORT SOCKET CALLS

CALLS is a JSON object of system calls to try: for each name its number and arguments.
"""

import ctypes
import errno
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def tried(act: Callable[[], object]) -> str:
    """``ok: RESULT``, or the name of the error."""
    try:
        return f"ok: {act()}"
    except Exception as error:  # noqa: BLE001 - whatever comes is the answer
        return type(error).__name__


def connect(family: int, address: object) -> None:
    with socket.socket(family) as client:
        client.settimeout(5)
        client.connect(address)  # type: ignore[arg-type]


def send_to(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"canary", ("127.0.0.1", port))


def error_of(call: list[int]) -> str | None:
    """The name of the error of a system call, or None where it was carried out."""
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.syscall(*map(ctypes.c_long, call)) == -1
    return errno.errorcode[ctypes.get_errno()] if failed else None


def refused_calls(calls: dict[str, list[int]]) -> dict[str, str | None]:
    """The error of each call; without a filter, which some of them would change, none is tried."""
    is_filtered = "Seccomp:\t2" in Path("/proc/self/status").read_text()
    return {name: error_of(call) for name, call in calls.items()} if is_filtered else {}


def speak_to_itself() -> str:
    one, other = socket.socketpair()
    with one, other:
        one.sendall(b"word")
        return other.recv(4).decode()


def leave_behind() -> int:
    """A process of a session of its own, whose parent is gone."""
    program = "import os, subprocess, sys; subprocess.Popen(['sleep', sys.argv[1]], start_new_session=True)"
    subprocess.run([sys.executable, "-S", "-c", program, "86399"], check=True, timeout=30)
    return os.getpid()


def main() -> None:
    outside, other, parent, port, path = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    found = {
        "environment": dict(os.environ),
        "descriptors": [number for number in range(3, 64) if _is_open(number)],
        "shadow": tried(lambda: Path("/etc/shadow").read_bytes()),
        "other": tried(lambda: Path(other).read_bytes()),
        "list": tried(lambda: list(Path(outside).iterdir())),
        "write": tried(lambda: Path(outside, "written").write_text("x")),
        "overwrite": tried(lambda: Path(other).write_text("x")),
        "remove": tried(lambda: Path(other).unlink()),
        "mode": tried(lambda: Path(other).chmod(0o777)),
        "link": tried(lambda: os.link(other, "linked")),
        "stat": tried(lambda: Path(other).stat().st_size),
        "access": tried(lambda: os.access(other, os.F_OK)),
        "readlink": tried(lambda: Path(outside, "link").readlink()),
        "machine": tried(
            lambda: [path for path in ("/etc/shadow", "/etc/hostname", "/etc/fstab") if Path(path).exists()]
        ),
        "climb": tried(lambda: Path(f"/proc/self/root{other}").stat().st_size),
        "own": tried(lambda: Path("own").write_text("x")),
        "run": tried(lambda: subprocess.run(["uname"], check=True, capture_output=True, timeout=30).returncode),
        "tcp": tried(lambda: connect(socket.AF_INET, ("127.0.0.1", port))),
        "udp": tried(lambda: send_to(port)),
        "unix": tried(lambda: connect(socket.AF_UNIX, path)),
        "pair": tried(speak_to_itself),
        "parents_environment": tried(lambda: Path(f"/proc/{parent}/environ").read_bytes()),
        "parents_memory": tried(lambda: Path(f"/proc/{parent}/mem").open("rb").close()),
        "signal": tried(lambda: os.kill(parent, 0)),
        "user": tried(lambda: os.setgroups([])),
        "calls": refused_calls(json.loads(sys.argv[6])),
        "status": Path("/proc/self/status").read_text(),
        "large": tried(_write_large),
        "forks": tried(_fork_often),
        "left": tried(leave_behind),
    }
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    time.sleep(86400)


def _write_large() -> None:
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with Path("large").open("wb") as file:
        file.truncate(2**21)


def _fork_often() -> None:
    import signal

    made: list[int] = []
    try:
        for _ in range(200):
            made.append(os.fork() or _sleep())
    finally:
        for child in made:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _sleep() -> int:
    time.sleep(86400)
    return 0


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
