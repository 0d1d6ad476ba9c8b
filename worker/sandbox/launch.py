"""Restrict the current process: either a process forked for a job, or one that then executes another program:

    python -S -m worker.sandbox.launch SPECIFICATION PARENT PROGRAM [ARGUMENT ...]

SPECIFICATION is JSON with the fields of :class:`worker.sandbox.restrictions.Specification`; PARENT is the id of the process
that starts this one. Before the program starts, one line of JSON on standard output names the restrictions that this system
did not grant. This module imports no libraries, since the restrictions must be in force before there is a second thread.
"""

import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any

from worker.sandbox import landlock, own_root, privileges, system_calls

RESTRICTIONS = FILES, ROOT, NETWORK, PROCESSES, REMAINS, COUNT = (
    "files",
    "root",
    "network",
    "processes",
    "remains",
    "count",
)
"""A restricted process reaches only its own files, and does not learn which others there are; it reaches no network or socket;
it can neither signal nor read other processes; everything that it starts ends with it, and is bounded in number."""
_KEEPS_SIGNALS = 6
"""First version of Landlock that blocks signals to processes outside."""


def restrict(specification: dict[str, Any], parent: int) -> dict[str, str]:
    """Restrict this process. With namespaces this returns in a forked child, while the calling process waits for it.

    Args:
        specification: see above.
        parent: id of the process that started this one; this one ends with it.

    Returns:
        Each restriction that the system does not grant, and why.
    """
    if sys.platform != "linux":
        return dict.fromkeys(RESTRICTIONS, "this system is not Linux")
    privileges.die_with_parent()
    if os.getppid() != parent:
        sys.exit("the parent process has ended")
    privileges.go_first()
    uncounted = _count(specification["processes"])
    refused = _separate(specification) | uncounted
    privileges.limit(specification["file_bytes"], specification["open_files"], specification["processes"])
    privileges.forgo_new_privileges()
    try:
        if (
            landlock.restrict(
                specification["listed"], specification["read"], specification["write"], specification["devices"]
            )
            >= _KEEPS_SIGNALS
        ):
            refused.pop(PROCESSES, None)
    except OSError as error:
        refused[FILES] = f"no Landlock: {error.strerror}"
    privileges.drop_capabilities()
    try:
        system_calls.restrict(has_gpu=specification["has_gpu"])
    except OSError as error:
        # Sockets in the file system can be reached from every namespace, so namespaces alone do not cut the network off.
        refused[NETWORK] = f"no filter of system calls: {error.strerror}"
    return refused


def report(descriptor: int, refused: dict[str, str]) -> None:
    """Write the restrictions that are not granted."""
    line = json.dumps({"type": "restrictions", "refused": refused}) + "\n"
    os.write(descriptor, line.encode())


def _count(processes: int) -> dict[str, str]:
    if not privileges.is_uncounted():
        return {}
    try:
        privileges.count_in_group(processes)
    except OSError as error:
        return {COUNT: f"root's processes are not counted, and there is no control group for them: {error.strerror}"}
    return {}


def _separate(specification: dict[str, Any]) -> dict[str, str]:
    try:
        privileges.separate()
    except OSError as error:
        return dict.fromkeys((ROOT, PROCESSES, REMAINS), f"no namespaces: {error.strerror}")
    _be_first()
    privileges.see_own_processes()
    changeable = (*specification["write"], *specification["devices"])
    try:
        own_root.enter(specification["read"], changeable, specification["write"][0])
    except OSError as error:
        return {ROOT: f"no root of its own: {error.strerror}"}
    return {}


def _be_first() -> None:
    """Continue as the first process of the new namespace; the process outside waits for it and ends with the same status."""
    child = os.fork()
    if child == 0:
        privileges.die_with_parent()
        return
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        with suppress(OSError):  # the action of SIGKILL cannot be set
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    report(1, restrict(json.loads(sys.argv[1]), int(sys.argv[2])))
    os.execv(sys.argv[3], sys.argv[3:])  # noqa: S606
