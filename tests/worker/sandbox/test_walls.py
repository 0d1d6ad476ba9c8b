"""Each restriction is tried from inside. What the platform does not grant is skipped with its reason."""

import json
import os
import platform
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from pydantic import SecretStr

from store.settings import Settings
from tests.waiting import wait_until
from tests.worker.sandbox.dangerous import DANGEROUS
from worker.sandbox import launch
from worker.sandbox.restrictions import NAMES_OF_THREADS, environment, specification
from worker.sandbox.system_calls import CHECKED, NEWER, PROCESSORS, numbers

SECONDS = 90.0
CANARY = "canary-secret"
INTRUDER = Path(__file__).with_name("intruder.py")
PROCESSES = 100
FILE_BYTES = 2**20


def calls_to_try() -> dict[str, tuple[int, ...]]:
    """Calls that reach the kernel's more dangerous parts, by what they are called and ask for: number and arguments."""
    if platform.machine() not in PROCESSORS:
        return {}
    known = numbers(CHECKED + DANGEROUS, platform.machine())
    shapes = {
        f"unshare {name}": ("unshare", flag)
        for name, flag in {"users": 0x10000000, "network": 0x40000000, "mounts": 0x20000, "all": 0x7E020000}.items()
    }
    shapes |= {
        f"socket of {name}": ("socket", int(family), int(kind), protocol)
        for name, family, kind, protocol in (
            *(("netlink route", 16, 3, 0), ("netlink netfilter", 16, 3, 12), ("packet", 17, 3, 0), ("vsock", 40, 1, 0)),
            *(
                ("raw", 2, 3, 255),
                ("raw 6", 10, 3, 255),
                ("tcp", 2, 1, 0),
                ("kernel ciphers", 38, 5, 0),
            ),
        )
    }
    shapes |= {"clone users": ("clone", 0x10000000 | 17), "socketpair of tipc": ("socketpair", 30, 1, 0)}
    shapes |= {name: (name,) for name in numbers(DANGEROUS, platform.machine())}
    return {what: (known[shape[0]], *shape[1:], *[0] * (7 - len(shape))) for what, shape in shapes.items()}


CALLS = calls_to_try()


class Inside:
    """A restricted intruder, and what it has found."""

    def __init__(self, root: Path, port: int, unix: str) -> None:
        self.home, self.inputs, self.other = root / "made", root / "inputs", root / "others.txt"
        for directory in (self.home, self.inputs):
            directory.mkdir(mode=0o700)
        self.other.write_text("another job's")
        self.other.chmod(0o600)
        (root / "link").symlink_to(self.other)
        program = self.inputs / INTRUDER.name
        program.write_bytes(INTRUDER.read_bytes())
        settings = Settings(
            database_url=SecretStr("postgresql://nowhere/none"), var_dir=root / "var", sandbox_file_bytes=FILE_BYTES
        )
        arguments = (str(root), str(self.other), str(os.getpid()), str(port), unix, json.dumps(CALLS))
        command = (sys.executable, str(program), *arguments)
        allowed = replace(specification(self.inputs, self.home, settings), processes=PROCESSES)
        secrets = {"DATABASE_URL": CANARY, "BROKER_URL": CANARY, "HF_TOKEN": CANARY, "AWS_SECRET_ACCESS_KEY": CANARY}
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-m", launch.__name__, json.dumps(asdict(allowed)), str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            cwd=self.home,
            env=environment(os.environ | secrets | {"CUDA_VISIBLE_DEVICES": ""}, self.home),
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.refused: dict[str, str] = json.loads(self.process.stdout.readline())["refused"]
        self.found: dict[str, Any] = json.loads(self.process.stdout.readline())

    def needs(self, restriction: str) -> None:
        """Skip the test where the restriction is not granted."""
        if restriction in self.refused:
            pytest.skip(f"this machine does not grant the restriction '{restriction}': {self.refused[restriction]}")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    if sys.platform != "linux":
        pytest.skip("the restrictions are Linux's")
    root = tmp_path_factory.mktemp("restrictions")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        path = f"/tmp/axformer-{os.getpid()}-{time.monotonic_ns()}.sock"  # a path of a socket is short
        local.bind(path)
        local.listen()
        made = Inside(root, server.getsockname()[1], path)
        try:
            yield made
        finally:
            made.end()
            Path(path).unlink()


def test_no_secret_is_in_its_environment(inside: Inside) -> None:
    assert CANARY not in json.dumps(inside.found["environment"])
    assert "DATABASE_URL" not in inside.found["environment"]
    assert inside.found["environment"]["CUDA_VISIBLE_DEVICES"] == ""
    assert inside.found["environment"]["OMP_WAIT_POLICY"] == os.environ.get("OMP_WAIT_POLICY", "PASSIVE")


def test_it_inherits_no_descriptor(inside: Inside) -> None:
    assert inside.found["descriptors"] == []


@pytest.mark.parametrize("what", ["shadow", "other", "list", "write", "overwrite", "remove", "link"])
def test_it_reaches_no_file_that_it_was_not_given(inside: Inside, what: str) -> None:
    inside.needs(launch.FILES)
    assert inside.found[what] in ("PermissionError", "FileNotFoundError", "OSError")
    assert inside.other.read_text() == "another job's"
    assert not (inside.home.parent / "written").exists()


@pytest.mark.parametrize(
    ("what", "answer"),
    [
        *((what, "FileNotFoundError") for what in ("stat", "readlink", "climb")),
        *(("access", "ok: False"), ("machine", "ok: []")),
    ],
)
def test_it_does_not_learn_which_other_files_there_are(inside: Inside, what: str, answer: str) -> None:
    inside.needs(launch.ROOT)
    assert inside.found[what] == answer
    assert sorted(path.name for path in inside.home.iterdir()) == ["large", "own"]


def test_its_processes_are_bounded_in_number_also_for_root(inside: Inside) -> None:
    inside.needs(launch.COUNT)
    assert inside.found["forks"] == "BlockingIOError"


def test_it_changes_no_mode(inside: Inside) -> None:
    inside.needs(launch.NETWORK)  # the filter of system calls is the same
    assert inside.found["mode"].startswith("ok")
    assert inside.other.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("what", CALLS)
def test_it_reaches_no_other_part_of_the_kernel(inside: Inside, what: str) -> None:
    inside.needs(launch.NETWORK)
    by_number = "ENOSYS" if CALLS[what][0] >= NEWER else "EPERM"
    assert inside.found["calls"][what] == ("EAFNOSUPPORT" if " " in what and "socket" in what else by_number)


def test_it_does_its_own_work(inside: Inside) -> None:
    assert [inside.found[name] for name in ("own", "run", "pair")] == ["ok: 1", "ok: 0", "ok: word"]


@pytest.mark.parametrize("what", ["tcp", "udp", "unix"])
def test_it_reaches_nobody(inside: Inside, what: str) -> None:
    inside.needs(launch.NETWORK)
    assert inside.found[what] == ("PermissionError" if what == "unix" else "OSError")


@pytest.mark.parametrize("what", ["parents_environment", "parents_memory", "signal"])
def test_it_does_nothing_to_its_parent(inside: Inside, what: str) -> None:
    inside.needs(launch.PROCESSES)
    assert inside.found[what] in ("PermissionError", "FileNotFoundError", "ProcessLookupError")


def test_it_has_no_rights_and_gets_none(inside: Inside) -> None:
    status = dict(line.split(":\t") for line in inside.found["status"].splitlines() if ":\t" in line)
    assert status["NoNewPrivs"] == "1"
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
    assert inside.found["user"] == "PermissionError"


def test_it_writes_no_file_larger_than_allowed(inside: Inside) -> None:
    assert inside.found["large"] == "OSError"
    assert (inside.home / "large").stat().st_size <= FILE_BYTES


def test_what_it_starts_ends_with_it(inside: Inside) -> None:
    """The last of these tests: it ends the process."""
    inside.needs(launch.REMAINS)
    assert inside.found["left"].startswith("ok")
    below = psutil.Process(inside.process.pid).children(recursive=True)
    wait_until(lambda: any("86399" in one.cmdline() for one in below))  # empty for a moment within its start
    inside.process.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(below, timeout=SECONDS)
    assert alive == []


CUDA_DOES = """
import errno, json, os, socket, threading
def name_a_thread():
    os.write(os.open(f"/proc/self/task/{threading.get_native_id()}/comm", os.O_RDWR), b"cuda-EvtHandlr")
def listen():
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.bind(f"\\0cuda-uvmfd-1-{os.getpid()}")
    one.listen(16)
    return one
def error_of(does):
    try:
        does()
    except OSError as error:
        return errno.errorcode[error.errno]
answers = {
    "names": error_of(name_a_thread),
    "listens": error_of(listen),
    "accepts": error_of(lambda: listen().accept()),
    "inet": error_of(lambda: socket.socket(socket.AF_INET)),
    "in a directory": error_of(lambda: socket.socket(socket.AF_UNIX).bind("here.sock")),
}
print(json.dumps(answers), flush=True)
"""
"""What CUDA's driver does when it starts, and what it could do with the same calls."""


@pytest.mark.parametrize("has_gpu", [True, False])
def test_what_cuda_needs_is_granted_with_a_gpu_and_nothing_beside(has_gpu: bool, tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("the restrictions are Linux's")
    for name in ("made", "inputs"):
        (tmp_path / name).mkdir()
    settings = Settings(database_url=SecretStr("postgresql://nowhere/none"))
    allowed = specification(tmp_path / "inputs", tmp_path / "made", settings)
    devices = ("/dev/null", *(NAMES_OF_THREADS if has_gpu else ()))
    allowed = replace(allowed, has_gpu=has_gpu, devices=devices)
    command = [sys.executable, "-S", "-m", launch.__name__, json.dumps(asdict(allowed)), str(os.getpid())]
    said = subprocess.run(
        [*command, sys.executable, "-S", "-c", CUDA_DOES],
        stdout=subprocess.PIPE,
        cwd=tmp_path / "made",
        env=environment(os.environ, tmp_path / "made"),
        check=True,
        timeout=SECONDS,
    ).stdout.splitlines()
    refused, answers = map(json.loads, said)
    if refused["refused"].keys() & {launch.FILES, launch.NETWORK}:
        pytest.skip(f"this machine does not grant the restrictions: {refused['refused']}")
    if has_gpu:
        expected = {
            "names": None,
            "listens": None,
            "accepts": "EPERM",
            "inet": "EAFNOSUPPORT",
            "in a directory": "EACCES",
        }
    else:
        expected = {
            "names": "EACCES" if launch.ROOT in refused["refused"] else "EROFS",
            "listens": "EPERM",
            "accepts": "EPERM",
            "inet": "EAFNOSUPPORT",
            "in a directory": "EPERM",
        }
    assert answers == expected


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("the restrictions are Linux's")
    for name in ("made", "inputs"):
        (tmp_path / name).mkdir()
    parent = (
        "import os, subprocess, sys, time\n"
        "allowed, module, *program = sys.argv[1:]\n"
        "one = subprocess.Popen([sys.executable, '-S', '-m', module, allowed, str(os.getpid()), *program])\n"
        "print(one.pid, flush=True)\n"
        "time.sleep(86400)\n"
    )
    settings = Settings(database_url=SecretStr("postgresql://nowhere/none"))
    command = (sys.executable, "-S", "-c", "import time; print('up', flush=True); time.sleep(86400)")
    allowed = specification(tmp_path / "inputs", tmp_path / "made", settings)
    with subprocess.Popen(
        [sys.executable, "-S", "-c", parent, json.dumps(asdict(allowed)), launch.__name__, *command],
        stdout=subprocess.PIPE,
        env=environment(os.environ, tmp_path / "made"),
    ) as worker:
        try:
            assert worker.stdout is not None
            launcher = psutil.Process(int(worker.stdout.readline()))
            while worker.stdout.readline() != b"up\n":
                pass
            family = [launcher, *launcher.children(recursive=True)]
        finally:
            worker.kill()
        _, alive = psutil.wait_procs(family, timeout=SECONDS)
        assert alive == []
