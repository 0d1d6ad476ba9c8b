"""What can go wrong, each done once to a running service while it carries out a job. Each gives the job's last row."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import httpx2

from store.states import JobState
from store.system.processes import Child
from tests.faults.service import READY_SECONDS, Service, is_ready, kill_tree, tree, wait_until

MOST_DELAY = 0.3
"""Seconds that a kill may come after the state that it waits for."""
PASS_SECONDS = 4.0
"""About what a job takes from its claim to its end."""
SECOND_SIGNAL_SECONDS = 0.5
ROOM_FOR_INPUTS = 256
"""KiB of a disk that holds the checkpoint and the data, and not also the pruned model."""
STATES = (JobState.FETCHING, JobState.VALIDATING, JobState.RUNNING, JobState.PACKAGING)


@dataclass(frozen=True)
class Point:
    """A moment of a job at which something happens."""

    name: str
    is_reached: Callable[[Mapping[str, Any]], bool]
    delay: float
    """Seconds after that."""


def point_of(seed: int, trials: int) -> Point:
    """A moment chosen by the seed: in a state, at a number of trials, or some time after the claim."""
    random = Random(seed)
    kind = random.choice(["state", "trial", "time"])
    if kind == "state":
        state = STATES[seed % len(STATES)]
        delay = random.uniform(0, MOST_DELAY) if state is not JobState.PACKAGING else random.uniform(0, MOST_DELAY) * 2
        return Point(f"{state} + {delay:.2f} s", lambda row: bool(row["state"] == state), delay)
    if kind == "trial":
        count = random.randrange(1, trials)
        return Point(f"trial {count}", lambda row: bool(row["trials"] >= count), 0.0)
    delay = random.uniform(0, PASS_SECONDS)
    return Point(f"claim + {delay:.2f} s", lambda row: row["worker"] is not None, delay)


def at_trial(seed: int, trials: int) -> Point:
    """A number of trials in the first half of a pass, chosen by the seed."""
    count = Random(seed).randrange(1, trials // 2)
    return Point(f"trial {count}", lambda row: bool(row["trials"] >= count), 0.0)


def kill_worker(
    service: Service, worker: Child, body: Mapping[str, Any], point: Point, *, whole: bool
) -> tuple[Any, Child]:
    """``kill -9`` of the job's process, or of the whole worker, which is then started anew; also gives the worker."""
    job_id = service.post(body)
    row = service.wait_for(job_id, point.is_reached)
    time.sleep(point.delay)
    if whole:
        kill_tree(worker.process)
        worker = service.start_worker()
    else:
        kill_holder(row)
    return service.wait_until_ended(job_id), worker


def kill_broker(service: Service, body: Mapping[str, Any], point: Point) -> list[Any]:
    """``kill -9`` of Valkey in the middle of a job. A job that is posted meanwhile is accepted and done; gives both."""
    job_id = service.post(body)
    service.wait_for(job_id, point.is_reached)
    time.sleep(point.delay)
    kill_tree(service.valkey.child.process)
    second = service.post(body)
    service.restart_valkey()
    return [service.wait_until_ended(job_id), service.wait_until_ended(second)]


def kill_database(service: Service, body: Mapping[str, Any], point: Point) -> Any:
    """``kill -9`` of PostgreSQL with all its processes in the middle of a job. The API acknowledges nothing meanwhile."""
    job_id = service.post(body)
    service.wait_for(job_id, point.is_reached)
    time.sleep(point.delay)
    kill_tree(service.postgres.child.process)
    answer = service.client.post("/v1/jobs", json=dict(body))
    assert answer.status_code == httpx2.codes.SERVICE_UNAVAILABLE, answer.text
    service.restart_postgres()
    wait_until(lambda: is_ready(service.client), READY_SECONDS, service.postgres.child.log)
    return service.wait_until_ended(job_id)


def freeze_database(service: Service, body: Mapping[str, Any], point: Point, seconds: float) -> Any:
    """PostgreSQL takes connections and does not answer for so long in the middle of a job. Then all goes on."""
    job_id = service.post(body)
    service.wait_for(job_id, point.is_reached)
    time.sleep(point.delay)
    frozen = tree(service.postgres.child.process)
    for process in frozen:
        process.suspend()
    time.sleep(seconds)
    for process in frozen:
        process.resume()
    return service.wait_until_ended(job_id)


def terminate_worker(
    service: Service, worker: Child, body: Mapping[str, Any], point: Point
) -> tuple[Any, Child, float]:
    """``SIGTERM``, and once more; also gives the worker that comes next and how many seconds the first one took to end."""
    job_id = service.post(body)
    service.wait_for(job_id, point.is_reached)
    time.sleep(point.delay)
    begun = time.monotonic()
    worker.process.terminate()
    time.sleep(SECOND_SIGNAL_SECONDS)
    worker.process.terminate()
    worker.process.wait(READY_SECONDS)
    seconds = time.monotonic() - begun
    worker = service.start_worker()
    return service.wait_until_ended(job_id), worker, seconds


def cancel(service: Service, body: Mapping[str, Any], point: Point) -> tuple[Any, float]:
    """Cancel a job in the middle; also gives how many seconds after the answer its worker had ended it."""
    job_id = service.post(body)
    service.wait_for(job_id, point.is_reached)
    time.sleep(point.delay)
    answer = service.client.post(f"/v1/jobs/{job_id}/cancel")
    begun = time.monotonic()
    assert answer.status_code in (httpx2.codes.ACCEPTED, httpx2.codes.CONFLICT), answer.text
    row = service.wait_until_ended(job_id)
    return row, time.monotonic() - begun


def survive_all(service: Service, workers: list[Child], body: Mapping[str, Any], trials: int) -> tuple[Any, str]:
    """One job whose process is killed, then Valkey and PostgreSQL, and whose next worker is stopped past its lease.

    Also gives the stopped worker's log.
    """
    job_id = service.post(body)
    service.wait_for(job_id, lambda row: row["trials"] >= trials // 5)
    kill_holder(service.row(job_id))
    service.wait_for(job_id, lambda row: row["attempt"] > 1 and row["trials"] >= trials // 3)
    kill_tree(service.valkey.child.process)
    kill_tree(service.postgres.child.process)
    answer = service.client.post("/v1/jobs", json=dict(body))
    assert answer.status_code == httpx2.codes.SERVICE_UNAVAILABLE, answer.text
    service.restart_postgres()
    service.restart_valkey()
    row = service.wait_for(job_id, lambda row: row["attempt"] > 2 and row["trials"] >= trials // 2)
    pid = pid_of(row)
    holder = next(worker for worker in workers if pid in [process.pid for process in tree(worker.process)])
    return _stop_past_lease(service, holder, row)


def pid_of(row: Mapping[str, Any]) -> int:
    """The process that has the job."""
    return int(row["worker"].rpartition(":")[2])


def kill_holder(row: Mapping[str, Any]) -> None:
    """``kill -9`` of the process that has the job, if any has it still."""
    if row["worker"] is not None:
        with suppress(ProcessLookupError):
            os.kill(pid_of(row), signal.SIGKILL)


def stop_worker_past_lease(service: Service, worker: Child, body: Mapping[str, Any], point: Point) -> tuple[Any, str]:
    """``SIGSTOP`` of the only worker, a second one that takes its job, then ``SIGCONT``. Also gives the first one's log."""
    job_id = service.post(body)
    row = service.wait_for(job_id, point.is_reached)
    for process in tree(worker.process):
        process.suspend()
    second = service.start_worker()
    ended = _stop_past_lease(service, worker, row)
    kill_tree(second.process)
    return ended


def _stop_past_lease(service: Service, worker: Child, row: Mapping[str, Any]) -> tuple[Any, str]:
    stopped, job_id = tree(worker.process), row["id"]
    for process in stopped:
        process.suspend()
    taken = service.wait_for(job_id, lambda now: now["fence"] > row["fence"])
    before = len(worker.log.read_text())
    for process in stopped:
        process.resume()
    if taken["fence"] > row["fence"]:
        wait_until(lambda: has_given_up(worker.log.read_text()[before:]), READY_SECONDS, worker.log)
    return service.wait_until_ended(job_id), worker.log.read_text()


def has_given_up(log: str) -> bool:
    """Whether a worker says that it lost its job, or, where it was stopped within a transaction, its connection: PostgreSQL
    ends transactions that stand still."""
    return "lease_lost" in log or "database_unavailable" in log


def fill_disk(service: Service, body: Mapping[str, Any], kibibytes: int) -> tuple[Any, Any]:
    """A worker whose disk holds only so much fails the job; a retry by another succeeds. Gives the row of either end."""
    var = service.environment["AXFORMER_VAR_DIR"]
    Path(var).mkdir(exist_ok=True)
    mount = f'mount -t tmpfs -o size={kibibytes}k tmpfs "$0" && exec "$@"'
    cramped = service.start_worker(prefix=("unshare", "--map-root-user", "--mount", "sh", "-c", mount, var))
    job_id = service.post(body)
    failed = service.wait_until_ended(job_id)
    kill_tree(cramped.process)
    answer = service.client.post(f"/v1/jobs/{job_id}/retry")
    assert answer.status_code == httpx2.codes.ACCEPTED, answer.text
    roomy = service.start_worker()
    ended = service.wait_until_ended(job_id)
    kill_tree(roomy.process)
    return failed, ended


def can_fill_disk() -> bool:
    """Whether this user may have a small file system of his own, in a namespace of mounts."""
    command = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return shutil.which("unshare") is not None and subprocess.run(command, capture_output=True).returncode == 0
