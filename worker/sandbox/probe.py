"""Probe which restrictions this machine grants, before there is a job."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from store.settings import Settings
from worker.sandbox import launch
from worker.sandbox.errors import RestrictionsMissingError
from worker.sandbox.process import INPUTS, MADE
from worker.sandbox.restrictions import environment, specification

REQUIRED = (launch.FILES, launch.NETWORK, launch.PROCESSES)
"""What ``sandbox=required`` asks for. ``remains`` needs namespaces, which many containers do not grant."""
_NOTHING = (sys.executable, "-S", "-c", "")
"""A program that does nothing."""
_SECONDS = 120.0
"""Timeout for an interpreter without libraries on a busy machine."""


def refused_restrictions(settings: Settings) -> dict[str, str]:
    """Find each restriction that this machine does not grant, and why.

    Raises:
        RestrictionsMissingError: the operator requires one of them, or no process starts under the others.
    """
    with TemporaryDirectory(prefix="axformer-restrictions-") as workspace:
        inputs, home = Path(workspace, INPUTS), Path(workspace, MADE)
        for directory in (inputs, home):
            directory.mkdir()
        allowed = specification(inputs, home, settings)
        try:
            launched = subprocess.run(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-S", "-m", launch.__name__, json.dumps(asdict(allowed)), str(os.getpid()), *_NOTHING],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                env=environment(os.environ, home),
                timeout=_SECONDS,
                check=True,
            )
        except subprocess.SubprocessError as error:
            reason = f"a restricted process cannot be started here, so no job can be worked on: {error}"
            raise RestrictionsMissingError(reason) from None
    refused: dict[str, str] = json.loads(launched.stdout)["refused"]
    check_required(refused, settings)
    return refused


def check_required(refused: Mapping[str, str], settings: Settings) -> None:
    """Check that the machine grants what the operator requires.

    Raises:
        RestrictionsMissingError: it does not.
    """
    missing = {name: why for name, why in refused.items() if name in REQUIRED}
    if missing and settings.sandbox == "required":
        reasons = "; ".join(f"{name}: {why}" for name, why in missing.items())
        raise RestrictionsMissingError(f"AXFORMER_SANDBOX=required, and this machine does not grant {reasons}")
