"""A simulated janitor, which removes what is past its time beside the workers, and is in nobody's way."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy.orm import Session

from store.repositories import retention
from tests.simulation.invariants import BrokenInvariantError
from tests.simulation.world import LEASE_SECONDS, BlockedError, World

MOST_SECONDS_KEPT = LEASE_SECONDS
"""Files are kept for up to so long after a job's end, far less than a run lasts, and jobs three times as long."""


@dataclass(frozen=True)
class Swept:
    """What a transaction of a janitor has removed."""

    had_its_turn: bool
    jobs: Sequence[str] = ()
    artifacts: Sequence[str] = ()


@dataclass
class Janitor:
    """The janitors of all workers. Each of their transactions is one of them."""

    world: World

    def sweep(self) -> None:
        """Remove what is past its time, unless another janitor is at it."""
        artifact_age = timedelta(seconds=self.world.random.uniform(0, MOST_SECONDS_KEPT))
        job_age = timedelta(seconds=self.world.random.uniform(0, 3 * MOST_SECONDS_KEPT))
        is_alone = not any(isinstance(one.result, Swept) for one in self.world.open)

        def clean(session: Session) -> Swept:
            if not retention.take_turn(session):
                return Swept(had_its_turn=False)
            artifacts = retention.forget_old_artifacts(session, artifact_age)
            return Swept(had_its_turn=True, artifacts=artifacts, jobs=retention.remove_old_jobs(session, job_age))

        def answer(result: Any) -> None:
            if isinstance(result, Swept):
                if is_alone and not result.had_its_turn:
                    raise BrokenInvariantError("a janitor was kept from its work, and no other was at it")
                self.world.counts["jobs removed by age"] += len(result.jobs)
                self.world.counts["artifacts removed by age"] += len(result.artifacts)

        self.world.transact(clean, answer)


def check_not_in_the_way(world: World, claimed: Any) -> None:
    """Make sure that a claim has not met a lock of a janitor.

    Raises:
        BrokenInvariantError: it has; nothing else was open that could hold one.
    """
    if isinstance(claimed, BlockedError) and all(isinstance(one.result, Swept) for one in world.open):
        raise BrokenInvariantError("a claim had to wait for a janitor")
