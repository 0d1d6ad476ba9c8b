"""The processes that run this worker's jobs, from the main process's side."""

import ctypes
import os
import signal
import sys
from contextlib import suppress

import billiard
import psutil

from store.system.launch import PR_SET_PDEATHSIG
from worker.sandbox.descendants import descendants


def job_processes() -> list[int]:
    """The ids of the living processes."""
    return [child.pid for child in billiard.active_children()]


def kill_tree(pid: int) -> None:
    """Kill a child process and its descendants.

    If it has ended, nothing happens, not even to another process that has its id by now.
    """
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if process.ppid() != os.getpid():
            return
        for member in (*descendants(pid), process):
            with suppress(psutil.NoSuchProcess):
                member.kill()


def stop_with_parent() -> None:
    """Have this process asked to stop when its parent dies, for whatever reason (on Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
