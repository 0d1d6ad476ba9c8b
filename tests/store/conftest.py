"""Makers of jobs and trials for tests of the store."""

from typing import Any

import pytest

from axformer.trial import Phase, Trial, Verdict
from store.repositories.jobs import NewJob
from store.tables.teams import Team


class Makers:
    """Makes values that differ from a plain one only in what a test is about."""

    def __init__(self, team_id: str) -> None:
        self.team_id = team_id

    def job(self, **changes: Any) -> NewJob:
        """A new job of the team."""
        plain: dict[str, Any] = {
            "team_id": self.team_id,
            "name": "job",
            "checkpoint": {"uri": "file:///model"},
            "validation": {"uri": "file:///data.jsonl"},
            "preset": "paper",
            "config": {},
        }
        return NewJob(**plain | changes)

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


@pytest.fixture
def make(team: Team) -> Makers:
    """Makes jobs of ``team``, and trials."""
    return Makers(team.id)
