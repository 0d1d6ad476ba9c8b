"""Makers of jobs and trials, and the steps that most tests of the store take."""

from collections.abc import Callable
from typing import Any

from sqlalchemy.orm import Session

from axformer.plan.trial import Phase, Trial, Verdict
from store.repositories import claims, jobs
from store.repositories.jobs import NewJob
from store.session import Sessions, session_scope
from store.tables.jobs import Job
from tests.specs import with_spec

JobStep = Callable[[Session, Job], object]
"""Something done to a job."""


class Makers:
    """Makes values that differ from a plain one only in what a test is about."""

    def __init__(self, team_id: str) -> None:
        self.team_id = team_id

    def job(self, **changes: Any) -> NewJob:
        """A new job of the team."""
        plain = {"team_id": self.team_id, "name": "job"}
        spec = {"checkpoint": {"uri": "file:///model"}, "validation": {"uri": "file:///data.jsonl"}}
        return NewJob(**plain | with_spec(changes, **spec))

    def trial(self, seq: int, **changes: Any) -> Trial:
        """The trial with this number."""
        plain: dict[str, Any] = {
            "seq": seq,
            "phase": Phase.BLOCK if seq else Phase.BASE,
            "element": f"layer.{seq}.ffn" if seq else None,
            "loss": 1 / (seq + 3),
            "loss_is_bound": False,
            "helped": 7 if seq else None,
            "samples": 10,
            "total": 10,
            "min_loss": 1 / 3,
            "verdict": Verdict.REJECT if seq else Verdict.BASE,
            "precision": "float32",
            "parameters": 100 * seq,
            "seconds": 0.1 * seq,
        }
        return Trial(**plain | changes)


def claim(sessions: Sessions, worker: str = "worker") -> Job:
    """The next job, which there must be, claimed for a minute."""
    with session_scope(sessions) as session:
        job = claims.claim_next(session, worker, 60)
    assert job is not None
    return job


def nothing_to_claim(sessions: Sessions) -> bool:
    """Whether a worker finds no job."""
    with session_scope(sessions) as session:
        return claims.claim_next(session, "worker", 60) is None


def reload(sessions: Sessions, job: Job) -> Job:
    """The job as it is now."""
    with session_scope(sessions) as session:
        found = jobs.find_job(session, job.id, job.team_id)
    assert found is not None
    return found
