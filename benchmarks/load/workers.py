"""A process that plays workers without models: ``python -m benchmarks.load.workers SECONDS``.

It claims a job each second, renews leases and writes trials as workers do, so that claims meet the load and streams have
something to say. Prints the milliseconds of each claim as JSON.
"""

import json
import sys
import time

from axformer.plan.trial import Trial
from benchmarks.load.queue import begin, long_trial
from store.repositories import claims, leases
from store.session import Sessions, make_engine, make_sessions, session_scope
from store.settings import Settings
from store.tables.jobs import Job

WORKERS = 4
_LEASE_SECONDS = 60.0
_ROUND_SECONDS = 1.0
_TRIALS = 10
"""Trials a worker writes in one batch."""


def play(sessions: Sessions, seconds: float) -> list[float]:
    """Work for so long; gives milliseconds of claims."""
    held: list[Job] = []
    taken: list[float] = []
    begun = time.monotonic()
    while (now := time.monotonic()) < begun + seconds:
        if len(held) >= WORKERS:
            job = held.pop(0)
            with session_scope(sessions) as session:
                leases.finish_failed(session, job.id, job.fence, {"code": "load", "message": "", "retryable": False})
        asked = time.perf_counter()
        with session_scope(sessions) as session:
            claimed = claims.claim_next(session, "load:1", _LEASE_SECONDS)
        taken.append((time.perf_counter() - asked) * 1000)
        if claimed is not None:
            begin(sessions, claimed)
            held.append(claimed)
        for job in held:
            _write(sessions, job, int(now - begun))
        time.sleep(max(0.0, _ROUND_SECONDS - (time.monotonic() - now)))
    return taken


def _write(sessions: Sessions, job: Job, number: int) -> None:
    trials: list[Trial] = [long_trial(seq) for seq in range(number * _TRIALS, (number + 1) * _TRIALS)]
    with session_scope(sessions) as session:
        leases.add_trials(session, job.id, job.fence, trials, {})
    with session_scope(sessions) as session:
        leases.heartbeat(session, job.id, job.fence, _LEASE_SECONDS)


if __name__ == "__main__":
    print(json.dumps(play(make_sessions(make_engine(Settings.from_environment())), float(sys.argv[1]))))
