"""Which job must be claimed next: the rule of the queue (``docs/queue.md``), written a second time and in plain Python."""

from collections.abc import Sequence
from datetime import datetime
from math import isclose

from store.settings import HALF_LIFE_SECONDS, PRIORITY_SECONDS
from store.states import WORKING, JobState
from tests.simulation.database import Row, Snapshot


def wrong_claim(before: Snapshot, line: Sequence[Row], claimed: Row, others: Sequence[Row]) -> str | None:
    """Why a claim was not of the first in the line, or null where it was.

    Args:
        before: what was there before the claim, with the time of the claim.
        line: the jobs that waited then, without those that the claim has ended on its way.
        claimed: the job as it was then.
        others: the jobs of the line that could have been claimed instead.
    """
    mine = _place(before, line, claimed)
    for other in others:
        theirs = _place(before, line, other)
        if theirs[0] != mine[0]:
            is_wrong = theirs[0] < mine[0]
        elif not isclose(theirs[1], mine[1], rel_tol=1e-9, abs_tol=1e-6):
            is_wrong = theirs[1] < mine[1]
        else:
            # Teams whose used time is the same but for rounding may go in either order; a team's own jobs may not.
            is_wrong = other["team_id"] == claimed["team_id"] and theirs[2:] < mine[2:]
        if is_wrong:
            return f"{other['name']} waits with {theirs}, {claimed['name']} was taken with {mine}"
    return None


def waiting_jobs(snapshot: Snapshot) -> list[Row]:
    """Jobs that a worker could take now."""
    return [job for job in snapshot.jobs.values() if _is_free(snapshot, job)]


def _place(snapshot: Snapshot, line: Sequence[Row], job: Row) -> tuple[int, float, float, str]:
    """Running jobs of its team and those that go before it, time used, and its place in the team: the smallest goes first."""
    team = job["team_id"]
    running = sum(_is_held(snapshot, one) for one in snapshot.jobs.values() if one["team_id"] == team)
    behind = sum(_key(one) < _key(job) for one in line if one["team_id"] == team)
    return (running + behind, _used(snapshot, team), *_key(job))


def _key(job: Row) -> tuple[float, str]:
    waits = job["waits_since"].timestamp() - job["priority"] * PRIORITY_SECONDS
    return waits, job["id"]


def _used(snapshot: Snapshot, team: str) -> float:
    """Worker seconds of a team, faded."""
    account = snapshot.teams[team]
    past = [(account["used_seconds"], account["used_as_of"])]
    past += [(turn["seconds"], turn["ended_at"]) for turn in snapshot.turns if turn["team_id"] == team]
    past += [
        _held(snapshot, one) for one in snapshot.jobs.values() if one["team_id"] == team and one["worker"] is not None
    ]
    return sum(seconds * 0.5 ** ((snapshot.now - since).total_seconds() / HALF_LIFE_SECONDS) for seconds, since in past)


def _held(snapshot: Snapshot, job: Row) -> tuple[float, datetime]:
    """For how many seconds, and until when, a worker has held a job."""
    until = min(snapshot.now, job["lease_until"])
    return max(0.0, (until - job["claimed_at"]).total_seconds()), until


def _is_held(snapshot: Snapshot, job: Row) -> bool:
    return job["worker"] is not None and job["lease_until"] >= snapshot.now


def _is_free(snapshot: Snapshot, job: Row) -> bool:
    if job["state"] == JobState.QUEUED:
        return True
    return bool(job["state"] in WORKING and job["lease_until"] < snapshot.now and job["attempt"] < job["max_attempts"])
