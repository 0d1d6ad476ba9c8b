"""The service as the demo finds it: one that runs here already, or one started for the demo and stopped with it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from axformer.client import Address

VAR = Path("var").resolve()
_ADDRESS = VAR / "serve.json"
_LOG = VAR / "log" / "demo-serve.log"
_START_SECONDS = 180.0
"""A cold disk takes a minute for the imports alone."""
_STOP_SECONDS = 60.0
_POLL_SECONDS = 0.2
_LOG_TAIL = 2000


class StackStartError(Exception):
    """The service did not start."""


@contextmanager
def running_stack() -> Iterator[Address]:
    """The address of a running service.

    Raises:
        StackStartError: it ended or was not ready in time; the message holds the end of its output.
    """
    found = _running()
    if found is not None:
        yield found
        return
    _LOG.parent.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"AXFORMER_VAR_DIR": str(VAR)}
    with _LOG.open("w") as log:
        # In a session of its own a Ctrl-C reaches the demo alone, which then stops the service in good order.
        process = subprocess.Popen(
            [sys.executable, "-m", "store.serve"], env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield _wait_until_ready(process)
    finally:
        _stop(process)


def _running() -> Address | None:
    """The service that serve.json tells of, if it answers."""
    try:
        content = json.loads(_ADDRESS.read_text())
        address = Address(content["url"], content["api_key"])
        answer = httpx2.get(
            f"{address.url}/v1/queue", headers={"Authorization": f"Bearer {address.api_key}"}, trust_env=False
        )
    except (OSError, ValueError, KeyError, httpx2.HTTPError):
        return None
    return address if answer.status_code == httpx2.codes.OK else None


def _wait_until_ready(process: subprocess.Popen[bytes]) -> Address:
    deadline = time.monotonic() + _START_SECONDS
    while (found := _running()) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise StackStartError(f"the service did not start; the end of {_LOG}:\n{_LOG.read_text()[-_LOG_TAIL:]}")
        time.sleep(_POLL_SECONDS)
    return found


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_STOP_SECONDS)
    except (KeyboardInterrupt, subprocess.TimeoutExpired):
        process.send_signal(signal.SIGINT)
        process.wait()
