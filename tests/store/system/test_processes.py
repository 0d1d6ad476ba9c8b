"""A child ends when it is told to or when its parent dies, and takes its own children with it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from store.system.processes import Child, spawn
from tests.waiting import wait_until

IGNORE_TERM = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True)"
SLEEP = "import time; time.sleep(100)"
START_A_CHILD = "import subprocess, sys; c = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)'])"


def is_alive(process: int) -> bool:
    """Whether the process runs; one that is dead but not waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(log: Path, text: str) -> str:
    """The log's content once the text is in it."""
    wait_until(lambda: text in log.read_text())
    return log.read_text()


def python(code: str, log: Path, **options: object) -> Child:
    """Start a piece of Python."""
    return spawn("child", [sys.executable, "-c", code], log=log, **options)  # type: ignore[arg-type]


def test_output_and_errors_go_to_the_log(tmp_path: Path) -> None:
    code = "import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)"
    child = python(code, tmp_path / "deep" / "log")
    assert child.process.wait() == 3
    assert child.log_tail() == "out\nerr"
    child.stop(grace_seconds=0)


def test_only_the_end_of_a_log_is_shown(tmp_path: Path) -> None:
    child = python("print(*range(100), sep='\\n')", tmp_path / "log")
    child.process.wait()
    assert child.log_tail().splitlines() == [str(number) for number in range(80, 100)]
    child.stop(grace_seconds=0)


def test_a_child_has_its_directory_and_environment(tmp_path: Path) -> None:
    code = "import os; print(os.getcwd(), sorted(os.environ.items()))"
    child = python(code, tmp_path / "log", directory=tmp_path, environment={"A": "b", "LC_CTYPE": "C.UTF-8"})
    assert child.process.wait() == 0
    assert child.log_tail() == f"{tmp_path} [('A', 'b'), ('LC_CTYPE', 'C.UTF-8')]"
    child.stop(grace_seconds=0)


def test_a_child_that_does_not_listen_is_killed_after_the_grace(tmp_path: Path) -> None:
    child = python(f"{IGNORE_TERM}; {SLEEP}", tmp_path / "log")
    wait_for(child.log, "deaf")
    start = time.monotonic()
    child.stop(grace_seconds=0.3)
    assert time.monotonic() - start >= 0.3
    assert child.process.returncode == -signal.SIGKILL


def test_a_stopped_child_leaves_no_child_of_its_own(tmp_path: Path) -> None:
    child = python(f"{START_A_CHILD}; print(c.pid, flush=True); {SLEEP}", tmp_path / "log")
    grandchild = int(wait_for(child.log, "\n"))
    child.stop(grace_seconds=5)
    assert child.process.returncode == -signal.SIGTERM
    wait_until(lambda: not is_alive(grandchild))


def test_a_child_that_has_ended_keeps_its_id_until_its_own_children_are_killed(tmp_path: Path) -> None:
    child = python(f"{START_A_CHILD}; print(c.pid, flush=True)", tmp_path / "log")
    grandchild = int(wait_for(child.log, "\n"))
    wait_until(child.has_ended)
    assert psutil.Process(child.process.pid).ppid() == os.getpid(), "its id may be another process's by now"
    assert child.stop(grace_seconds=5) == 0
    wait_until(lambda: not is_alive(grandchild))


@pytest.mark.parametrize("has_ended", [True, False])
def test_no_signal_goes_to_an_id_that_was_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_ended: bool
) -> None:
    signalled: list[int] = []

    def killed(group: int, number: int, kill: Callable[[int, int], None] = os.killpg) -> None:
        signalled.append(psutil.Process(group).ppid())
        kill(group, number)

    monkeypatch.setattr(os, "killpg", killed)
    child = python("pass" if has_ended else SLEEP, tmp_path / "log")
    if has_ended:
        child.process.wait()
    for _ in range(2):
        child.stop(grace_seconds=0)
        child.kill()
    assert signalled == [] if has_ended else [os.getpid()]


def test_a_child_gets_its_signal_when_the_parent_is_killed(tmp_path: Path) -> None:
    code = "import sys; from store.system.processes import spawn; from pathlib import Path; "
    code += f"c = spawn('c', [sys.executable, '-c', '{SLEEP}'], log=Path({str(tmp_path / 'log')!r})); "
    parent = subprocess.Popen([sys.executable, "-c", f"{code} print(c.process.pid, flush=True); {SLEEP}"], stdout=-1)
    with parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_alive(child)
        # The launcher must have become the program, or its parent's death is not noticed.
        wait_until(
            lambda: psutil.Process(child).cmdline()[-2:] == ["-c", SLEEP] and len(psutil.Process(child).cmdline()) == 3
        )
        parent.kill()
    wait_until(lambda: not is_alive(child))


def test_a_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no program 'no-such-program'"):
        spawn("child", ["no-such-program"], log=tmp_path / "log")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change the user")
def test_root_can_start_a_child_as_another_user(tmp_path: Path) -> None:
    child = spawn("id", ["id", "-un"], log=tmp_path / "log", directory=Path("/"), user="nobody")
    assert child.process.wait() == 0
    assert child.log_tail() == "nobody"
    child.stop(grace_seconds=0)
