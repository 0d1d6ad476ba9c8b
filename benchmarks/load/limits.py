"""How much one PostgreSQL bears: ``python -m benchmarks.load.limits [--seconds 10]``.

Threads that play workers do nothing but write, as quickly as they can: jobs from claim to end, batches of trials, renewed
leases. PostgreSQL, with its default and safe settings, shares the machine with them.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pydantic import SecretStr

from benchmarks.load.queue import begin, fill_queue, long_trial
from store.embedded.postgres import start_postgres
from store.embedded.server import running
from store.migrate import migrate
from store.repositories import claims, leases
from store.session import Sessions, make_engine, make_sessions, session_scope
from store.settings import Settings
from store.tables.jobs import Job

_LEASE_SECONDS = 600.0
_BATCH = 50
_FAILED = {"code": "load", "message": "", "retryable": False}

Step = Callable[[int], int]
"""Does something for the n-th time, and gives how many things were done."""


def whole_jobs(sessions: Sessions, worker: str) -> Step:
    """Each step claims a job, takes it through its states, and ends it."""

    def step(_: int) -> int:
        job = _claim(sessions, worker)
        with session_scope(sessions) as session:
            leases.finish_failed(session, job.id, job.fence, _FAILED)
        return 1

    return step


def trials(sessions: Sessions, worker: str) -> Step:
    """Each step writes a batch of trials of one job."""
    job = _claim(sessions, worker)

    def step(number: int) -> int:
        batch = [long_trial(seq) for seq in range(number * _BATCH, (number + 1) * _BATCH)]
        with session_scope(sessions) as session:
            leases.add_trials(session, job.id, job.fence, batch, {})
        return _BATCH

    return step


def heartbeats(sessions: Sessions, worker: str) -> Step:
    """Each step renews the lease of one job."""
    job = _claim(sessions, worker)

    def step(_: int) -> int:
        with session_scope(sessions) as session:
            leases.heartbeat(session, job.id, job.fence, _LEASE_SECONDS)
        return 1

    return step


def _claim(sessions: Sessions, worker: str) -> Job:
    with session_scope(sessions) as session:
        job = claims.claim_next(session, worker, _LEASE_SECONDS)
    assert job is not None
    begin(sessions, job)
    return job


def rate(steps: list[Step], seconds: float) -> float:
    """What all steps together do in a second, each in its own thread."""
    end = time.monotonic() + seconds

    def work(step: Step) -> int:
        done = number = 0
        while time.monotonic() < end:
            done += step(number)
            number += 1
        return done

    with ThreadPoolExecutor(len(steps)) as threads:
        return sum(threads.map(work, steps)) / seconds


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load.limits")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--threads", type=int, default=4)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="axformer-limits-") as made,
        running(start_postgres(Path(made) / "postgres", Path(made) / "postgres.log")) as postgres,
    ):
        settings = Settings(database_url=SecretStr(postgres.url))
        migrate(settings)
        engine = make_engine(settings)
        sessions = make_sessions(engine)
        fill_queue(sessions)
        print("| a second | 1 thread |", f"{given.threads} threads |\n|---|---|---|")
        for name, kind in (("leases renewed", heartbeats), ("trials", trials), ("jobs", whole_jobs)):
            figures = [
                rate([kind(sessions, f"host:{name}:{number}") for number in range(count)], given.seconds)
                for count in (1, given.threads)
            ]
            print(f"| {name} | {figures[0]:.0f} | {figures[1]:.0f} |", flush=True)
        engine.dispose()
    return 0


if __name__ == "__main__":
    sys.exit(main())
