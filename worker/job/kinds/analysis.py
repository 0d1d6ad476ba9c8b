"""An analysis: make reports on a model, which has no trials, and publish them."""

from dataclasses import asdict
from typing import Any

from worker.job.publication import publish_analysis
from worker.job.work import Work


def carry_out(work: Work) -> None:
    """Wait for the reports and publish them."""
    work.ledger.record([], _progress(work))
    publish_analysis(work)


def _progress(work: Work) -> dict[str, Any]:
    """Progress without trials, which only has steps; a job that goes on elsewhere compares the inputs."""
    opened = work.opened
    none: dict[str, Any] = {"done": 0, "known": 0, "seconds": 0.0, "seconds_left": None}
    known = {"inputs": dict(opened.inputs.digests), "first_look": opened.first_look}
    return none | known | {"dimensions": asdict(opened.dimensions)}
