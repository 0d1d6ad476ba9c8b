"""The processes in which this worker's jobs run, as its main process sees them."""

import ctypes
import os
import signal
import sys
from contextlib import suppress

import billiard
import psutil

from store.launch import PR_SET_PDEATHSIG
from worker.descendants import descendants


def job_processes() -> list[int]:
    """The ids of those that live."""
    return [child.pid for child in billiard.active_children()]


def kill_tree(pid: int) -> None:
    """End a process of this one and all that it has started, at once.

    Nothing happens where it has ended, not even to the process that may have its id by now.
    """
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if process.ppid() != os.getpid():
            return
        for one in (*descendants(pid), process):
            with suppress(psutil.NoSuchProcess):
                one.kill()


def stop_with_parent() -> None:
    """Let this process be told to stop when the one that started it dies, however that happens (on Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
