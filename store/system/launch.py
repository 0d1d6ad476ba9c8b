"""Execute another program that ends when its parent does, optionally as another user. Run as a script:

    python launch.py SIGNAL USER PROGRAM [ARGUMENT ...]

SIGNAL is the number of the signal that the program gets when its parent dies (Linux; elsewhere it gets none). USER is a
user's name, or empty for the present one; only root may change it.
"""

import ctypes
import os
import pwd
import sys

PR_SET_PDEATHSIG = 1
"""From <sys/prctl.h>. The kernel resets it when the user changes, so it is set last."""


def become(signal_number: int, user: str, command: list[str]) -> None:
    """Replace this process by the command; does not return."""
    if user:
        entry = pwd.getpwnam(user)
        os.setgroups([])
        os.setgid(entry.pw_gid)
        os.setuid(entry.pw_uid)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal_number)
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    become(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
