"""Asks which restrictions there are where the kernel refuses some calls, as in many containers.

python poor_machine.py SANDBOX CALL ...

SANDBOX is the setting, each CALL one of CALLS. Prints one JSON object: each restriction that is refused and why, or what a
worker would end with.
"""

import errno
import json
import platform
import sys
from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import SecretStr

from store.settings import Settings
from worker.sandbox import privileges, system_calls
from worker.sandbox.errors import RestrictionsMissingError
from worker.sandbox.probe import refused_restrictions

CALLS = "landlock 444 444 unshare 272 97 mount 165 40"
ERROR, ALLOW = 0x00050000, 0x7FFF0000


def become_poor(refused: Collection[str]) -> None:
    """Refuse calls to this process and all that it starts, with a filter like that of the sandbox."""
    privileges.forgo_new_privileges()
    filters = [(0x20, 0, 0, 0)]  # load the number
    for name, number in system_calls.numbers(CALLS, platform.machine()).items():
        if name in refused:
            error = errno.ENOSYS if name == "landlock" else errno.EPERM
            filters += system_calls.answered(number, ERROR | error)
    system_calls.install([*filters, (0x06, 0, 0, ALLOW)])


def main() -> None:
    become_poor(sys.argv[2:])
    with TemporaryDirectory() as made:
        settings = Settings(
            database_url=SecretStr("postgresql://nowhere/none"), var_dir=Path(made), sandbox=sys.argv[1]
        )
        try:
            sys.stdout.write(json.dumps(refused_restrictions(settings)))
        except RestrictionsMissingError as error:
            sys.stdout.write(json.dumps({"ends": str(error)}))


if __name__ == "__main__":
    main()
