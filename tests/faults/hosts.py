"""Several hosts on this machine: programs with directories of their own, which share PostgreSQL, Valkey and a bucket alone."""

import io
import socket
import subprocess
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from store.system.processes import LOOPBACK, Child, free_port
from tests.faults.faults import Point, pid_of
from tests.faults.service import READY_SECONDS, Service, kill_tree, service, tree, wait_until

_BUCKET = "axformer"
AWAY_SECONDS = 5.0
"""Longer than a request to the store is tried for here."""
SLOW_SECONDS = 0.05
"""That each piece of what the store sends and gets is held up."""
_ENVIRONMENT = {
    "AXFORMER_VAR_DIR": "",
    "AXFORMER_STORAGE": f"s3://{_BUCKET}/files",
    "AXFORMER_STORAGE_CONNECT_SECONDS": "0.5",
    "AXFORMER_STORAGE_READ_SECONDS": "1",
    "AXFORMER_STORAGE_ATTEMPTS": "2",
    "AXFORMER_SECRET_KEY": "a key that all hosts are given alike",
    "AXFORMER_FILE_ROOTS": "",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test-secret",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass
class Hosts:
    """A service on several hosts, and the gate before its store."""

    service: Service
    store_port: int
    gate_port: int
    gate: Child

    def close_gate(self) -> None:
        """``kill -9``: connections break, and new ones are refused."""
        kill_tree(self.gate.process)

    def open_gate(self, seconds: float = 0.0) -> None:
        """Start it again; it holds up each piece."""
        self.gate = _gate(self.service, self.gate_port, self.store_port, seconds)

    def upload(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The job with uploads in the place of files, which the hosts do not share."""
        checkpoint = Path(body["checkpoint"]["uri"].removeprefix("file://"))
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            tar.add(checkpoint, arcname=".")
        data = Path(body["validation"]["uri"].removeprefix("file://"))
        sent = {
            "checkpoint": self._send("checkpoint.tar", packed.getvalue()),
            "validation": self._send(data.name, data.read_bytes()),
        }
        return {**body, **sent}

    def _send(self, name: str, content: bytes) -> dict[str, str]:
        answer = self.service.client.post("/v1/uploads", files={"file": (name, content)})
        assert answer.status_code == 201, answer.text
        return {"uri": f"upload:{answer.json()['id']}"}


@contextmanager
def hosts(directory: Path) -> Iterator[Hosts]:
    """A service without a worker, whose files are in a bucket."""
    store_port, gate_port = free_port(), free_port()
    environment = _ENVIRONMENT | {"AXFORMER_STORAGE_ENDPOINT": f"http://{LOOPBACK}:{gate_port}"}
    started: list[Child] = []

    def before(made: Service) -> None:
        store = made.start("store", "tests.object_store", str(store_port), _BUCKET)
        wait_until(lambda: _answers(store_port, store.process), READY_SECONDS, store.log)
        started.append(_gate(made, gate_port, store_port, 0.0))

    with service(directory, environment, before) as made:
        yield Hosts(made, store_port, gate_port, *started)


def kill_holding_worker(hosts: Hosts, workers: list[Child], body: Mapping[str, Any], point: Point) -> Any:
    """``kill -9`` of the worker that has the job with all its processes; the other one, with another directory, goes on."""
    job_id = hosts.service.post(body)
    row = hosts.service.wait_for(job_id, point.is_reached)
    time.sleep(point.delay)
    row = hosts.service.row(job_id)
    if row["worker"] is not None:
        holder = next(worker for worker in workers if pid_of(row) in [one.pid for one in tree(worker.process)])
        kill_tree(holder.process)
        workers[workers.index(holder)] = hosts.service.start_worker()
    return hosts.service.wait_until_ended(job_id)


def kill_store(hosts: Hosts, body: Mapping[str, Any], point: Point) -> Any:
    """The store is killed in the middle of a job, and comes back."""
    job_id = hosts.service.post(body)
    hosts.service.wait_for(job_id, point.is_reached)
    time.sleep(point.delay)
    hosts.close_gate()
    time.sleep(AWAY_SECONDS)
    hosts.open_gate()
    return hosts.service.wait_until_ended(job_id)


def freeze_store(hosts: Hosts, body: Mapping[str, Any], point: Point) -> Any:
    """The store takes connections and does not answer in the middle of a job; then all goes on."""
    job_id = hosts.service.post(body)
    hosts.service.wait_for(job_id, point.is_reached)
    time.sleep(point.delay)
    frozen = tree(hosts.gate.process)
    for process in frozen:
        process.suspend()
    time.sleep(AWAY_SECONDS)
    for process in frozen:
        process.resume()
    return hosts.service.wait_until_ended(job_id)


def slow_store(hosts: Hosts, body: Mapping[str, Any]) -> Any:
    """A whole job with a store that drips."""
    hosts.close_gate()
    hosts.open_gate(SLOW_SECONDS)
    job_id = hosts.service.post(body)
    row = hosts.service.wait_until_ended(job_id)
    hosts.close_gate()
    hosts.open_gate()
    return row


def _gate(made: Service, port: int, store_port: int, seconds: float) -> Child:
    gate = made.start("gate", "tests.faults.gate", str(port), str(store_port), str(seconds))
    wait_until(lambda: _answers(port, gate.process), READY_SECONDS, gate.log)
    return gate


def _answers(port: int, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "it has ended by itself"
    with suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=1):
        return True
    return False
