"""Which walls this machine grants, asked before there is a job."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from store.settings import Settings
from worker.sandbox import launch
from worker.sandbox.errors import WallsMissingError
from worker.sandbox.process import INPUTS, MADE
from worker.sandbox.walls import environment, specification

REQUIRED = (launch.FILES, launch.NETWORK, launch.PROCESSES)
"""What ``sandbox=required`` asks for. That nothing is left behind takes namespaces, which many containers do not grant."""
_SECONDS = 120.0
"""For an interpreter without libraries on a busy machine."""


def refused_walls(settings: Settings) -> dict[str, str]:
    """Each wall that this machine does not grant, and why.

    Raises:
        WallsMissingError: the operator requires one of them, or nothing runs behind those that there are.
    """
    with TemporaryDirectory(prefix="axformer-walls-") as made:
        inputs, home = Path(made, INPUTS), Path(made, MADE)
        for directory in (inputs, home):
            directory.mkdir()
        walls = specification((sys.executable, "-S", "-c", ""), 1, inputs, home, settings)
        try:
            told = subprocess.run(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-S", "-m", launch.__name__, json.dumps(walls.as_dict())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                env=environment(os.environ, home),
                timeout=_SECONDS,
                check=True,
            )
        except subprocess.SubprocessError as error:
            reason = f"a process behind walls cannot be started here, so no job can be worked on: {error}"
            raise WallsMissingError(reason) from None
    refused: dict[str, str] = json.loads(told.stdout)["refused"]
    check_required(refused, settings)
    return refused


def check_required(refused: Mapping[str, str], settings: Settings) -> None:
    """Make sure that what the operator requires is granted.

    Raises:
        WallsMissingError: it is not.
    """
    missing = {name: why for name, why in refused.items() if name in REQUIRED}
    if missing and settings.sandbox == "required":
        reasons = "; ".join(f"{name}: {why}" for name, why in missing.items())
        raise WallsMissingError(f"AXFORMER_SANDBOX=required, and this machine does not grant {reasons}")
