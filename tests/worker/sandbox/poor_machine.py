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


def become_poor() -> None:
    """Refuse both calls to this process and all that it starts, with a filter like that of the sandbox."""
    processor = platform.machine()
    architecture, _ = system_calls._PROCESSORS[processor]
    numbers = system_calls.NUMBERS[processor] | {"landlock": LANDLOCK}
    own = system_calls.NUMBERS, system_calls.REFUSED, system_calls.REFUSED_OF_OTHERS, system_calls._PROCESSORS
    system_calls.NUMBERS = {processor: numbers}
    system_calls.REFUSED = {"unshare": errno.EPERM, "landlock": errno.ENOSYS}
    system_calls.REFUSED_OF_OTHERS = {}
    system_calls._PROCESSORS = {processor: (architecture, ())}
    privileges.forgo_new_privileges()
    system_calls.restrict()
    system_calls.NUMBERS, system_calls.REFUSED, system_calls.REFUSED_OF_OTHERS, system_calls._PROCESSORS = own


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
