"""Jobs by state, counted in the database at the moment Prometheus asks."""

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.exposition import generate_latest
from sqlalchemy.orm import Session

from store.repositories.queue import state_counts


def jobs_by_state(session: Session) -> bytes:
    """The number of jobs of all teams in each state, in the text format of Prometheus."""
    registry = CollectorRegistry()
    jobs = Gauge("axformer_jobs", "Jobs by state.", ["state"], registry=registry)
    for state, count in state_counts(session).items():
        jobs.labels(state.value).set(count)
    return generate_latest(registry)
