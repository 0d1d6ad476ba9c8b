"""A confined process is ended with all that it has started, and nobody else is."""

import os
import signal
import time
from pathlib import Path

import psutil
import pytest
from pydantic import SecretStr

from store.settings import Settings
from worker.sandbox.process import INPUTS, MADE, ConfinedProcess

SECONDS = 60.0


@pytest.fixture
def process(tmp_path: Path) -> ConfinedProcess:
    for name in (INPUTS, MADE):
        (tmp_path / name).mkdir(mode=0o700)
    return ConfinedProcess(tmp_path, Settings(database_url=SecretStr("postgresql://nowhere/none"), var_dir=tmp_path))


def test_a_process_that_has_died_keeps_its_id_until_it_is_ended(process: ConfinedProcess) -> None:
    """Looking whether it lives must not give its id back: what is killed by it afterwards could be anybody's."""
    os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + SECONDS
    while process.is_alive():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert psutil.Process(process.pid).ppid() == os.getpid()
    assert "exit code -9" in process.end()
    assert process.pid not in [one.pid for one in psutil.Process().children()]


def test_a_process_that_lives_is_ended_with_what_it_has_started(process: ConfinedProcess) -> None:
    first = psutil.Process(process.pid)
    deadline = time.monotonic() + SECONDS
    while process.lines.poll() is None:  # until the walls stand, it starts nothing
        assert time.monotonic() < deadline
        time.sleep(0.02)
    family = [first, *first.children(recursive=True)]
    assert "it had not ended" in process.end()
    _, alive = psutil.wait_procs(family, timeout=SECONDS)
    assert alive == []
