"""Prometheus metrics: the counters of all API processes, and the number of jobs by state, counted on request."""

import os

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.exposition import generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from sqlalchemy.orm import Session

from store.repositories.queue import state_counts

COUNTED_IN = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable of ``prometheus_client``: the directory in which processes count together. Without it each counts in its
own memory."""


def counted(registry: CollectorRegistry) -> bytes:
    """The counts since the start, over all processes, in the text format of Prometheus.

    Args:
        registry: the counters of this process.
    """
    if COUNTED_IN in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


def jobs_by_state(session: Session) -> bytes:
    """The number of jobs of all teams in each state, in the text format of Prometheus."""
    registry = CollectorRegistry()
    jobs = Gauge("axformer_jobs", "Jobs by state.", ["state"], registry=registry)
    for state, count in state_counts(session).items():
        jobs.labels(state.value).set(count)
    return generate_latest(registry)
