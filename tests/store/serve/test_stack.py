"""The parts of a stack are watched while they run, and end in the reverse of their order."""

import os
import signal
import sys
import time
from pathlib import Path
from threading import Timer

import pytest

from store.errors import StackError, StoppedError
from store.serve.stack import Program, Stack
from store.system.processes import free_port

DEAF = """import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("{ready}", "w").close()
time.sleep(100)
"""


def program(tmp_path: Path, name: str, *arguments: str, grace: float = 10.0) -> Program:
    """A program of the stack; its arguments follow ``python -m``."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}
    return Program(name, list(arguments), tmp_path / f"{name}.log", environment, grace)


def deaf(tmp_path: Path, grace: float) -> Program:
    """A program that does not end when it is asked to."""
    (tmp_path / "deaf.py").write_text(DEAF.format(ready=tmp_path / "ready"))
    return program(tmp_path, "deaf", "deaf", grace=grace)


def web(tmp_path: Path, port: int) -> Program:
    """A web server whose ``/readyz`` answers once the file is there."""
    return program(tmp_path, "web", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(tmp_path))


def test_it_is_ready_when_the_api_says_so(tmp_path: Path) -> None:
    port = free_port()
    with Stack() as stack:
        stack.add_program(web(tmp_path, port))
        with pytest.raises(StackError, match=r"not ready after 0.5 s \(last answer: (None|404)\)"):
            stack.wait_until_ready(port, 0.5)
        (tmp_path / "readyz").touch()
        stack.wait_until_ready(port, 20)
        stack.check()
    assert [child.has_ended() for child in stack.children] == [True]


def test_a_part_that_ends_by_itself_ends_the_whole(tmp_path: Path) -> None:
    with Stack() as stack:
        stack.add_program(web(tmp_path, free_port()))
        stack.add_program(program(tmp_path, "broken", "no_such_module"))
        with pytest.raises(StackError, match=r"broken has ended with status 1.*\n.*No module named no_such_module"):
            stack.watch()
    assert all(child.has_ended() for child in stack.children)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_watch_and_is_then_as_before(tmp_path: Path, number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with Stack() as stack:
        stack.add_program(web(tmp_path, free_port()))
        os.kill(os.getpid(), number)
        with pytest.raises(StoppedError):
            stack.watch()
        with pytest.raises(StoppedError):
            stack.add_program(web(tmp_path, free_port()))
    assert len(stack.children) == 1
    assert signal.getsignal(number) == before


def test_a_second_signal_does_not_wait_for_a_part_that_is_deaf(tmp_path: Path) -> None:
    start = time.monotonic()
    with Stack() as stack:
        stack.add_program(deaf(tmp_path, grace=60))
        while not (tmp_path / "ready").exists():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)
        Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    assert stack.children[0].process.returncode == -signal.SIGKILL
    assert time.monotonic() - start < 30


def test_the_last_started_ends_first(tmp_path: Path) -> None:
    ending = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(print(time.monotonic_ns())))"
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(
            f"{ending}\nopen(r'{tmp_path / name}.ready', 'w').close()\ntime.sleep(100)\n"
        )
    with Stack() as stack:
        for name in ("first", "second"):
            stack.add_program(program(tmp_path, name, name))
        while not all((tmp_path / f"{name}.ready").exists() for name in ("first", "second")):
            time.sleep(0.02)
    first, second = (int(child.log_tail()) for child in stack.children)
    assert second < first


def test_programs_run_with_this_python(tmp_path: Path) -> None:
    (tmp_path / "who.py").write_text("import sys; print(sys.executable)")
    with Stack() as stack:
        stack.add_program(program(tmp_path, "who", "who"))
        stack.children[0].process.wait()
    assert stack.children[0].log_tail() == sys.executable
