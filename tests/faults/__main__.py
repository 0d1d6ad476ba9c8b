"""The long version: ``python -m tests.faults --kills 30``, or one seed again: ``--first 12 --kills 1 --others 0``.

Prints each fault, what became of the job, and how many outcomes differed from that of the undisturbed pass.
"""

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from store.states import JobState
from store.system.processes import Child
from tests.faults import undisturbed as alone
from tests.faults.faults import (
    ROOM_FOR_INPUTS,
    at_trial,
    can_fill_disk,
    cancel,
    fill_disk,
    freeze_database,
    kill_broker,
    kill_database,
    kill_worker,
    point_of,
    stop_worker_past_lease,
    terminate_worker,
)
from tests.faults.hits import HITS, hit, hit_delivery, undisturbed
from tests.faults.hosts import Hosts, freeze_store, hosts, kill_holding_worker, kill_store, slow_store
from tests.faults.matrix import DELIVERY, NOTHING, PHASES, TRAINING, matrix
from tests.faults.service import LEASE_SECONDS, Service, kill_tree, service
from tests.faults.undisturbed import Outcome, outcome_of, write_inputs

FROZEN_SECONDS = 2 * LEASE_SECONDS
ROOM_FOR_NOTHING = 64
"""KiB, less than the checkpoint."""


class Torture:
    """Runs faults and keeps the score."""

    def __init__(self, service: Service, expected: Outcome) -> None:
        self.service = service
        self.expected = expected
        self.done = self.wrong = 0

    def note(self, what: str, row: Any, begun: float) -> None:
        """Compare the job's outcome with the undisturbed one and print it."""
        is_equal = row["state"] == JobState.SUCCEEDED and outcome_of(self.service, row["id"]) == self.expected
        self.done += 1
        self.wrong += not is_equal
        seconds = time.monotonic() - begun
        outcome = "equal" if is_equal else f"NOT EQUAL: {row['state']} {row['error']}"
        print(f"{what:50} attempts {row['attempt']}  {seconds:5.1f} s  {outcome}", flush=True)


def kill_many(torture: Torture, body: Any, seeds: range) -> int:
    """Kill a worker for each seed, in turn its job's process and all of it; how many kills met a job at work."""
    worker = torture.service.start_worker()
    met = 0
    for seed in seeds:
        begun, point, whole = time.monotonic(), point_of(seed, len(torture.expected.trace)), seed % 2 == 0
        row, worker = kill_worker(torture.service, worker, body, point, whole=whole)
        met += row["attempt"] > 1
        torture.note(f"kill -9 {'worker' if whole else 'child'} at {point.name} (seed {seed})", row, begun)
    kill_tree(worker.process)
    return met


def other_faults(torture: Torture, body: Any, seeds: range) -> None:
    """Each other fault once a seed."""
    for seed in seeds:
        point = point_of(seed, len(torture.expected.trace))
        worker = torture.service.start_worker()
        begun = time.monotonic()
        for row in kill_broker(torture.service, body, point):
            torture.note(f"kill -9 valkey at {point.name} (seed {seed})", row, begun)
        begun = time.monotonic()
        row = kill_database(torture.service, body, point)
        torture.note(f"kill -9 postgres at {point.name} (seed {seed})", row, begun)
        begun = time.monotonic()
        row = freeze_database(torture.service, body, point, FROZEN_SECONDS)
        torture.note(f"SIGSTOP postgres at {point.name} (seed {seed})", row, begun)
        begun = time.monotonic()
        row, worker, seconds = terminate_worker(torture.service, worker, body, point)
        torture.note(f"SIGTERM twice, ended in {seconds:.1f} s, at {point.name} (seed {seed})", row, begun)
        _cancel(torture, body, seed)
        _stop_past_lease(torture, worker, body, seed)
        kill_tree(worker.process)
    if seeds and can_fill_disk():
        for room in (ROOM_FOR_NOTHING, ROOM_FOR_INPUTS):
            begun = time.monotonic()
            failed, row = fill_disk(torture.service, body, room)
            torture.note(f"disk of {room} KiB ({failed['error']['code']} after {failed['trials']} trials)", row, begun)


def _cancel(torture: Torture, body: Any, seed: int) -> None:
    """Each cancelled job ends so, and says how soon; there is no outcome to compare."""
    point = at_trial(seed, len(torture.expected.trace))
    row, seconds = cancel(torture.service, body, point)
    torture.done += 1
    torture.wrong += row["state"] != JobState.CANCELLED
    print(f"{f'cancel at {point.name} (seed {seed})':50} {row['state']} {seconds:.2f} s after the answer", flush=True)


def _stop_past_lease(torture: Torture, worker: Child, body: Any, seed: int) -> None:
    begun, point = time.monotonic(), at_trial(seed, len(torture.expected.trace))
    row, _ = stop_worker_past_lease(torture.service, worker, body, point)
    torture.note(f"SIGSTOP past the lease at {point.name} (seed {seed})", row, begun)


def faults_of_hosts(torture: Torture, hosts: Hosts, body: Any, seeds: range) -> None:
    """For each seed a kill of the worker that has the job, of the store, of the database, and a store that hangs and drips; two
    workers with directories of their own."""
    workers = torture.service.start_workers(2)
    for seed in seeds:
        point = point_of(seed, len(torture.expected.trace))
        acts: dict[str, Callable[[], Any]] = {
            "kill -9 of the worker that has it": lambda: kill_holding_worker(hosts, workers, body, point),  # noqa: B023
            "kill -9 of the store": lambda: kill_store(hosts, body, point),  # noqa: B023
            "SIGSTOP of the store": lambda: freeze_store(hosts, body, point),  # noqa: B023
            "kill -9 of postgres": lambda: kill_database(torture.service, body, point),  # noqa: B023
        }
        for name, act in acts.items():
            begun = time.monotonic()
            torture.note(f"{name}, {point.name} (seed {seed})", act(), begun)
    begun = time.monotonic()
    torture.note("a slow store", slow_store(hosts, body), begun)


def _torture_hosts(directory: Path, given: argparse.Namespace) -> int:
    body, expected = write_inputs(directory), alone.undisturbed(directory)
    with hosts(directory) as started:
        torture = Torture(started.service, expected)
        faults_of_hosts(torture, started, started.upload(body), range(given.first, given.first + given.bucket))
    print(f"{torture.done} faults; {torture.wrong} outcomes differ")
    return 1 if torture.wrong else 0


def _torture_kinds(directory: Path) -> int:
    """Each kind of job with everything that can hit it; a standby is promoted once, at the end."""
    with matrix(directory) as ready:
        expected = undisturbed(ready)
        scored = [hit_delivery(ready, expected[DELIVERY]["of"])]
        print(scored[-1], flush=True)
        *often, once = HITS
        for what, kind in [*itertools.product(often, PHASES), (once, TRAINING)]:
            scored.append(hit(ready, what, kind, expected[kind]))
            print(scored[-1], flush=True)
        ready.clean_twice()
        left, wrong = ready.left(), sum(not one.is_equal for one in scored)
    print(f"{len(scored)} faults; {wrong} outcomes differ; left: {left}")
    return 0 if not wrong and left == NOTHING else 1


def main() -> int:
    """The command; 1 where an outcome differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--kills", type=int, default=30, help="kills of a worker")
    parser.add_argument("--others", type=int, default=3, help="rounds of all other faults")
    parser.add_argument("--first", type=int, default=0, help="seed of the first kill and round")
    parser.add_argument("--bucket", type=int, default=0, help="in the place of these: rounds with files in a bucket")
    parser.add_argument("--matrix", action="store_true", help="in the place of these: each kind of job with each fault")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="axformer-faults-") as made:
        directory = Path(made)
        if given.matrix:
            return _torture_kinds(directory)
        if given.bucket:
            return _torture_hosts(directory, given)
        body = write_inputs(directory)
        expected = alone.undisturbed(directory)
        print(f"undisturbed pass: {len(expected.trace)} trials")
        with service(directory) as started:
            torture = Torture(started, expected)
            met = kill_many(torture, body, range(given.first, given.first + given.kills))
            other_faults(torture, body, range(given.first, given.first + given.others))
    print(f"{torture.done} faults, {met} of {given.kills} kills met a job at work; {torture.wrong} outcomes differ")
    return 1 if torture.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
