"""The service as the demo finds it, one that runs here already or one started for the demo, and the demo's jobs on it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from axformer.client import Address, Client, Job, ServiceError
from axformer.config.goals import ABOUT_GOALS, parse_goal
from benchmarks.demo_data import CACHE

VAR = Path("var").resolve()
_ADDRESS = VAR / "serve.json"
_LOG = VAR / "log" / "demo-serve.log"
_START_SECONDS = 180.0
"""A cold disk takes a minute for the imports alone."""
_STOP_SECONDS = 60.0
_POLL_SECONDS = 0.2
_LOG_TAIL = 2000
FORMS = ("compact", "onnx", "onnx_int8")
"""The forms of every result."""


@dataclass(frozen=True)
class Wanted:
    """A goal and the data that it takes."""

    goal: str
    data: str
    """Name of the file, without its suffix."""
    knobs: Mapping[str, Any] = field(default_factory=dict)
    """Knobs beside the goal."""
    is_labelled: bool = True

    @property
    def title(self) -> str:
        """The goal for people."""
        return ABOUT_GOALS[parse_goal(self.goal).name].title

    @property
    def result(self) -> Path:
        """The directory of the downloaded result."""
        return CACHE / "results" / self.goal.partition("=")[0]


JOBS = (
    Wanted("no-worse", "validation"),
    Wanted("within-points=2", "more", {"budgets": [0.8, 0.6]}),
)
"""The first is the default of commands and service. It removes nothing from this model, and says so; the paper's own rule,
``as-paper``, takes two heads, whose effect is within the noise. Two points are what the rows can certify. Two budgets in the
place of eight keep the first run within five minutes on two cores."""

EMBEDDER = Wanted("operations=2", "texts", is_labelled=False)
"""The second act: the packaged model as the sentence embedder that it is."""


@contextmanager
def posted(
    client: Client, checkpoint: Path, data: Mapping[str, Path], goals: Sequence[Wanted] = JOBS
) -> Iterator[list[Job]]:
    """Post a job for each goal; they are cancelled if the block ends with an error.

    Otherwise a demo that was interrupted would keep the worker from the next one.
    """
    jobs: list[Job] = []
    try:
        for wanted in goals:
            jobs.append(_submit(client, checkpoint, data, wanted))
        yield jobs
    except BaseException:
        for job in jobs:
            with suppress(ServiceError):
                client.cancel(job.id)
        raise


def _submit(client: Client, checkpoint: Path, data: Mapping[str, Path], wanted: Wanted) -> Job:
    rows: dict[str, Any] = {"unlabelled": data[wanted.data]}
    if wanted.is_labelled:
        rows = {"validation": data[wanted.data], "test": data["test"]}
    return client.submit(
        f"{'reviews' if wanted.is_labelled else 'embedder'} {wanted.goal}",
        checkpoint=checkpoint,
        **rows,
        goal=wanted.goal,
        config=wanted.knobs,
        forms=FORMS,
    )


def fetch(client: Client, job_id: str, wanted: Wanted) -> Path:
    """Download the result, and compare its trace with the one that the API has shown.

    Raises:
        ServiceError: they differ.
    """
    shutil.rmtree(wanted.result, ignore_errors=True)
    client.download(job_id, wanted.result)
    over_http = client.save_trace(job_id, CACHE / "trace.jsonl")
    if over_http.read_bytes() != (wanted.result / "trace.jsonl").read_bytes():
        raise ServiceError("the trace over HTTP is not the trace.jsonl of the result")
    return wanted.result


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
