"""Writes of workers that were given a job long ago: whatever they try, it is refused."""

from typing import Any

from sqlalchemy.exc import NoResultFound
from sqlalchemy.orm import Session

from store.errors import LeaseLostError
from store.repositories import leases
from store.states import JobState
from tests.simulation.invariants import BrokenInvariantError
from tests.simulation.workers import trial_of
from tests.simulation.world import LEASE_SECONDS, NoAnswerError, World

_ERROR = {"code": "ghost", "message": "", "retryable": False}


def haunt(world: World) -> None:
    """Let any fence that is no longer valid write anything."""
    old = [claim for claim in world.claims if (world.seen.jobs.get(claim[0]) or {"fence": -1})["fence"] != claim[1]]
    if not old:
        return
    held = world.random.choice(old)
    tries: list[Any] = [
        lambda session: leases.heartbeat(session, *held, LEASE_SECONDS),
        lambda session: leases.set_state(session, *held, world.random.choice(list(JobState))),
        lambda session: leases.add_trials(session, *held, [trial_of(0, 0, 0)], {}),
        lambda session: leases.add_event(session, *held, "job.haunted", {}),
        lambda session: leases.finish_succeeded(session, *held, {}, []),
        lambda session: leases.finish_failed(session, *held, _ERROR),
        lambda session: leases.finish_cancelled(session, *held),
        lambda session: leases.release(session, *held, "haunted"),
    ]
    attempt = world.random.choice(tries)

    def write(session: Session) -> None:
        attempt(session)
        raise BrokenInvariantError(f"a write with fence {held[1]} was taken, which job {held[0]} no longer has")

    def answer(result: Any) -> None:
        if isinstance(result, LeaseLostError | NoResultFound):
            world.counts["ghosts refused"] += 1
        elif not isinstance(result, NoAnswerError):
            raise BrokenInvariantError(f"a ghost was told {result!r} instead of that its lease is lost")

    world.transact(write, answer)
