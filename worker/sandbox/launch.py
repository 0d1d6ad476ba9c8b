"""Restricts this process: one that was forked for a job, or one that becomes another program:

    python -S -m worker.sandbox.launch SPECIFICATION PARENT PROGRAM [ARGUMENT ...]

SPECIFICATION is JSON with the fields of :class:`worker.sandbox.restrictions.Specification`, PARENT the id of the process that
starts this. One line of JSON with the restrictions that this system did not grant goes to standard output before the program
starts. No library is imported here: the restrictions must be in force before there is a second thread.
"""

import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any

from worker.sandbox import landlock, privileges, system_calls

RESTRICTIONS = FILES, NETWORK, PROCESSES, REMAINS = "files", "network", "processes", "remains"
"""A restricted process reaches only the files it is given, and nobody over a network or a socket; it can neither signal nor
read other processes; what it starts ends with it."""
_KEEPS_SIGNALS = 6
"""Version of Landlock from which on it keeps signals inside."""


def restrict(specification: dict[str, Any], parent: int) -> dict[str, str]:
    """Restrict this process. Where namespaces are granted, this returns in a forked process, and the caller's waits for it.

    Args:
        specification: see above.
        parent: id of the process that has started this one, and with which it ends.

    Returns:
        Each restriction that is not granted, and why.
    """
    if sys.platform != "linux":
        return dict.fromkeys(RESTRICTIONS, "this system is not Linux")
    privileges.die_with_parent()
    if os.getppid() != parent:
        sys.exit("the process that wanted this one has ended")
    privileges.go_first()
    refused = _separate()
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
    try:
        system_calls.restrict()
    except OSError as error:
        # Sockets in the file system are reached from every namespace, so namespaces alone do not restrict anything.
        refused[NETWORK] = f"no filter of system calls: {error.strerror}"
    privileges.drop_capabilities()
    return refused


def report(descriptor: int, refused: dict[str, str]) -> None:
    """Write which restrictions are not granted."""
    line = json.dumps({"type": "restrictions", "refused": refused}) + "\n"
    os.write(descriptor, line.encode())


def _separate() -> dict[str, str]:
    try:
        privileges.separate()
    except OSError as error:
        return dict.fromkeys((PROCESSES, REMAINS), f"no namespaces: {error.strerror}")
    _be_first()
    return {}


def _be_first() -> None:
    """Go on as the first process of the new namespace, with which all others end; the one outside waits, and ends alike."""
    child = os.fork()
    if child == 0:
        privileges.die_with_parent()
        return
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        with suppress(OSError):  # of SIGKILL nothing can be set
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    report(1, restrict(json.loads(sys.argv[1]), int(sys.argv[2])))
    os.execv(sys.argv[3], sys.argv[3:])  # noqa: S606
