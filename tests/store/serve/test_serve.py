"""The whole service from one command: it answers, keeps its key, and leaves nothing running."""

import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from store.errors import StackError
from store.serve.__main__ import DEFAULT_PORT, choose_port

START_SECONDS = 180
STOP_SECONDS = 60
PARTS = ("postgres", "valkey", "worker", "api")


@pytest.fixture
def var() -> Iterator[Path]:
    """A directory for the service's files that every user can reach."""
    with tempfile.TemporaryDirectory(prefix="axformer-test-") as name:
        yield Path(name) / "var"


@contextmanager
def serving(var: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """The command, running, with nothing in its environment but a path."""
    with start(var, "--port", str(port)) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


def unused_port() -> int:
    """A free port below those that the system gives to connections, one of which might be given before the service starts."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with suppress(StackError):
            return choose_port(port)
    raise AssertionError("all are taken")


def start(var: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the command."""
    environment = {"PATH": os.environ["PATH"], "HOME": "", "AXFORMER_VAR_DIR": str(var)}
    command = [sys.executable, "-m", "store.serve", *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_greeting(process: subprocess.Popen[str]) -> str:
    """What it prints until it runs."""
    assert process.stdout is not None
    said = ""
    while "Ctrl-C ends it." not in said:
        line = process.stdout.readline()
        if not line:
            pytest.fail(f"{said}{process.communicate()[1]}")
        said += line
    return said


def children_of(process: subprocess.Popen[str]) -> dict[str, int]:
    """Process ids by the names of the parts."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return dict(zip(PARTS, map(int, children), strict=True))


def wait_until_gone(parts: dict[str, int]) -> None:
    """Wait until neither they nor what they have started runs: each part has a session of its own."""
    deadline = time.monotonic() + STOP_SECONDS
    while left := [process for process in Path("/proc").glob("[0-9]*") if session_of(process) in parts.values()]:
        assert time.monotonic() < deadline, [(process / "cmdline").read_text() for process in left]
        time.sleep(0.05)


def session_of(process: Path) -> int | None:
    """The id of the session of a process under ``/proc``; null where it has ended."""
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[3])
    except (FileNotFoundError, ProcessLookupError):
        return None


def status(port: int, path: str, key: str) -> int:
    """The status of the API's answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
    answer = connection.getresponse().status
    connection.close()
    return answer


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_it_serves_keeps_its_key_and_leaves_nothing_running(var: Path) -> None:
    port = unused_port()
    with serving(var, port) as process:
        said = wait_for_greeting(process)
        kept = json.loads((var / "serve.json").read_text())
        parts = children_of(process)
        assert sorted(kept) == ["api_key", "broker_url", "database_url", "url"]
        assert kept["url"] == f"http://127.0.0.1:{port}"
        assert kept["url"] in said
        assert kept["api_key"] in said
        assert stat.S_IMODE((var / "serve.json").stat().st_mode) == 0o600
        assert status(port, "/v1/jobs", kept["api_key"]) == 200
        assert status(port, "/v1/jobs", kept["api_key"][:-1]) == 401
        refused = start(var)
        assert "the service already runs in" in refused.communicate(timeout=START_SECONDS)[1]
        assert refused.returncode == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(STOP_SECONDS) == 0
    wait_until_gone(parts)

    with serving(var, port) as process:
        wait_for_greeting(process)
        assert json.loads((var / "serve.json").read_text())["api_key"] == kept["api_key"]
        assert status(port, "/v1/jobs", kept["api_key"]) == 200
        parts = children_of(process)
        os.kill(parts["worker"], signal.SIGKILL)
        _, complaint = process.communicate(timeout=STOP_SECONDS)
        assert "worker has ended with status -9; the end of" in complaint
        assert process.returncode == 1
    wait_until_gone(parts)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_nothing_is_left_running_when_it_is_killed(var: Path) -> None:
    with start(var, "--port", str(unused_port())) as process:
        wait_for_greeting(process)
        parts = children_of(process)
        process.kill()
    wait_until_gone(parts)


def test_a_port_that_is_taken_is_refused_or_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StackError, match=f"port {port} is taken; choose another with PORT="):
            choose_port(port)
    assert choose_port(port) == port
    assert choose_port(None) >= DEFAULT_PORT


def test_an_unreachable_database_is_one_clear_error(var: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "AXFORMER_VAR_DIR": str(var),
        "DATABASE_URL": "postgresql://x@127.0.0.1:1/x",
    }
    environment["BROKER_URL"] = "redis://127.0.0.1:1/0"
    command = [sys.executable, "-m", "store.serve"]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == 1
    assert finished.stderr.startswith("axformer serve: ")
    assert "refused" in finished.stderr
    assert "Traceback" not in finished.stderr
