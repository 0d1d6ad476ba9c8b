"""Which machine this is, for jobs that go on where their state is kept.

A machine is known by the directory that holds the state of its jobs, not by the name of its host: containers get a new name
when they are replaced, and those that share a volume have one state.
"""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile

from store.ids import new_id

_FILE = "machine"
_PREFIX = "mch"


@cache
def machine_of(var_dir: Path) -> str:
    """The id of the machine whose jobs keep their state in this directory; it is given at the first call."""
    file = var_dir / _FILE
    if not file.exists():
        var_dir.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=var_dir, prefix=f".{_FILE}-") as made:
            made.write(new_id(_PREFIX))
            made.flush()
            with suppress(FileExistsError):  # another worker was first
                os.link(made.name, file)
    return file.read_text()
