"""Builds walls around itself and becomes the program inside them:

    python -S -m worker.sandbox.launch SPECIFICATION

SPECIFICATION is JSON with the fields of :class:`worker.sandbox.walls.Specification`. One line of JSON with the walls that this
system did not grant goes to the program's own pipe before it starts. No library is imported here: the walls must stand before
there is a second thread.
"""

import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any

from worker.sandbox import landlock, privileges, system_calls

WALLS = FILES, NETWORK, PROCESSES, REMAINS = "files", "network", "processes", "remains"
"""The walls: it reaches only the files it is given; nobody over a network or a socket; it can neither signal nor read other
processes; what it starts ends with it."""
_KEEPS_SIGNALS = 6
"""Version of Landlock from which on it keeps signals inside."""


def launch(specification: dict[str, Any]) -> None:
    """Build the walls and become the program; does not return."""
    if sys.platform == "linux":
        refused = _build(specification)
    else:
        refused = dict.fromkeys(WALLS, "this system is not Linux")
    line = json.dumps({"type": "walls", "refused": refused}) + "\n"
    os.write(specification["tell"], line.encode())
    os.execv(specification["command"][0], specification["command"])  # noqa: S606


def _build(specification: dict[str, Any]) -> dict[str, str]:
    """Each wall that is not granted, and why."""
    privileges.die_with_parent()
    if os.getppid() != specification["parent"]:
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
        # Sockets in the file system are reached from every namespace, so namespaces alone are no wall.
        refused[NETWORK] = f"no filter of system calls: {error.strerror}"
    privileges.drop_capabilities()
    return refused


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
    launch(json.loads(sys.argv[1]))
