"""Asks which restrictions there are where the kernel knows no Landlock and grants no namespaces, as in many containers.

python poor_machine.py SANDBOX

SANDBOX is the setting. Prints one JSON object: each restriction that is refused and why, or what a worker would end with.
"""

import errno
import json
import platform
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import SecretStr

from store.settings import Settings
from worker.sandbox import privileges, system_calls
from worker.sandbox.errors import RestrictionsMissingError
from worker.sandbox.probe import refused_restrictions

LANDLOCK = 444
UNSHARE = {"x86_64": 272, "aarch64": 97}
ERROR, ALLOW = 0x00050000, 0x7FFF0000


def become_poor() -> None:
    """Refuse both calls to this process and all that it starts, with a filter like that of the sandbox."""
    privileges.forgo_new_privileges()
    system_calls.install(
        [
            (0x20, 0, 0, 0),  # load the number
            *system_calls.answered(UNSHARE[platform.machine()], ERROR | errno.EPERM),
            *system_calls.answered(LANDLOCK, ERROR | errno.ENOSYS),
            (0x06, 0, 0, ALLOW),
        ]
    )


def main() -> None:
    become_poor()
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
