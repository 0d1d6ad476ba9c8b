"""No descendant of a process is missed, whatever the clock does meanwhile."""

import subprocess
import sys
from itertools import count

import psutil
import pytest

from store.system.processes import descendants

TREE = (
    "import subprocess, sys\n"
    "one = subprocess.Popen(['sleep', '60'])\n"
    "print(one.pid, flush=True)\n"
    "sys.stdin.read()\n"
    "one.kill()\n"
)


@pytest.mark.skipif(sys.platform != "linux", reason="the start of the machine is read otherwise there")
def test_a_clock_that_goes_back_hides_no_descendant(monkeypatch: pytest.MonkeyPatch) -> None:
    program = [sys.executable, "-c", f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {TREE!r}])"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        youngest = int(process.stdout.readline())
        seconds = count(2_000_000_000, -1_000)
        monkeypatch.setattr("psutil._pslinux.boot_time", lambda: next(seconds))
        found = [one.pid for one in descendants(process.pid)]
        assert (len(found), found[-1]) == (2, youngest)
        assert psutil.Process(process.pid).children(recursive=True) == []  # why it is not asked
        process.stdin.close()
