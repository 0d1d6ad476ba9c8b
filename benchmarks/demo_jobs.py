"""The demo's jobs: one checkpoint, a goal each."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axformer.client import Client, Job, ServiceError
from axformer.config.goals import ABOUT_GOALS, parse_goal
from benchmarks.demo_data import CACHE

FORMS = ("compact", "onnx", "onnx_int8")
"""The forms of every result."""


@dataclass(frozen=True)
class Wanted:
    """A goal and the validation data that it takes."""

    goal: str
    data: str
    """Name of the file, without its suffix."""
    knobs: Mapping[str, Any] = field(default_factory=dict)
    """Knobs beside the goal."""

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
    return client.submit(
        f"reviews {wanted.goal}",
        checkpoint=checkpoint,
        validation=data[wanted.data],
        test=data["test"],
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
