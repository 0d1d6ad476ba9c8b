"""Asks which walls there are where the kernel knows no Landlock and grants no namespaces, as in many containers.

python poor_machine.py SANDBOX

SANDBOX is the setting. Prints one JSON object: each wall that is refused and why, or what a worker would end with.
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
from worker.sandbox.errors import WallsMissingError
from worker.sandbox.probe import refused_walls

UNSHARE = {"x86_64": 272, "aarch64": 97}
LANDLOCK = 444


def become_poor() -> None:
    """Refuse both calls to this process and all that it starts, with a filter like that of the walls."""
    architecture, _, _ = system_calls._PROCESSORS[platform.machine()]
    numbers = {"unshare": UNSHARE[platform.machine()], "landlock": LANDLOCK, system_calls._SEND_TO: 0xFFFF}
    system_calls._REFUSALS = {"unshare": errno.EPERM, "landlock": errno.ENOSYS}
    system_calls._PROCESSORS = {platform.machine(): (architecture, numbers, ())}
    privileges.forgo_new_privileges()
    system_calls.restrict()


def main() -> None:
    become_poor()
    with TemporaryDirectory() as made:
        settings = Settings(
            database_url=SecretStr("postgresql://nowhere/none"), var_dir=Path(made), sandbox=sys.argv[1]
        )
        try:
            sys.stdout.write(json.dumps(refused_walls(settings)))
        except WallsMissingError as error:
            sys.stdout.write(json.dumps({"ends": str(error)}))


if __name__ == "__main__":
    main()
