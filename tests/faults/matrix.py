"""Each kind of job, hit in its middle by a fault of the real stack, compared with an undisturbed one; what is left is counted.

A trigger makes a worker wait in its first write of a phase for as long as the test wants, so each fault meets the phase that it
names, however quick the machine is.
"""

import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import psutil
import psycopg

from store.states import TERMINAL
from store.system.processes import Child
from tests.faults.service import END_SECONDS, READY_SECONDS, Service, service, tree, wait_until
from tests.object_store import KEY, KEY_ID, ObjectStore, sha256_of
from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows

TRAINING, EXPORT, ANALYSIS, DELIVERY = "training", "export", "analysis", "delivery"
PHASES = {TRAINING: "training", EXPORT: "packaging", ANALYSIS: "at work"}
"""Where a job of each kind is hit: its state, or what it is at while it is running."""
Act = Callable[[], None]
_TIMED = {"seconds", "peak_bytes", "environment"}
_QUEUE = "axformer"
_STOP = """
CREATE FUNCTION stop_here() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_advisory_xact_lock_shared(1, hashtext(
    CASE WHEN NEW.state <> 'running' THEN NEW.state WHEN NEW.progress IS NULL THEN 'running'
         ELSE coalesce(NEW.progress->'step'->>'name', 'at work') END));
  RETURN NEW;
END $$;
CREATE TRIGGER stop_here BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION stop_here();
"""
_WAITING = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = 1 AND NOT granted)"
_LEFT_ROWS = """
SELECT (SELECT count(*) FROM jobs WHERE finished_at IS NULL OR worker IS NOT NULL OR handover_at IS NOT NULL
          OR handover_token IS NOT NULL OR lease_until IS NOT NULL)
     + (SELECT count(*) FROM deliveries WHERE state = 'pending')
"""
NOTHING: dict[str, Any] = {"rows": 0, "contents": [], "files": [], "processes": [], "messages": 0}
"""What is left of a service at rest."""
_ENVIRONMENT = {
    "AXFORMER_SECRET_KEY": "a key that all hosts are given alike",
    "AXFORMER_FILE_ROOTS": "",
    "AXFORMER_STORAGE_ATTEMPTS": "2",
    "AXFORMER_HANDOVER_RETRY_SECONDS": ",".join(["0.1"] * 100),
    "AXFORMER_RETAIN_ORPHAN_DAYS": "1e-6",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass
class Matrix:
    """A service whose files are in a bucket of this process, with two workers, and jobs to be hit."""

    service: Service
    store: ObjectStore
    bodies: dict[str, tuple[str, dict[str, Any]]]
    """Where a job of each kind is posted, and what."""
    seen: set[psutil.Process] = field(default_factory=set)
    """All processes that any worker ever had when a fault came."""
    workers: list[Child] = field(default_factory=list)

    def post(self, kind: str) -> str:
        """A job of a kind."""
        path, body = self.bodies[kind]
        answer = self.service.client.post(path, json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    @contextmanager
    def stopped(self, kind: str) -> Iterator[tuple[str, Act]]:
        """Post a job; its worker waits in its first write of the phase of its kind until it may go on, or the block is left."""
        with closing(psycopg.connect(self.service.postgres.url, autocommit=True)) as connection:
            connection.execute("SELECT pg_advisory_lock(1, hashtext(%s))", [PHASES[kind]])
            job_id = self.post(kind)

            def is_there() -> bool:
                assert self.service.row(job_id)["state"] not in TERMINAL, self.service.row(job_id)
                (is_waiting,) = connection.execute(_WAITING).fetchone() or (False,)
                return bool(is_waiting)

            wait_until(is_there, END_SECONDS, self.service.directory / "log" / "api.log")
            self.remember()
            yield job_id, connection.close

    @contextmanager
    def sending(self, job_id: str, target: str) -> Iterator[psutil.Process]:
        """Have a result delivered; its worker, who is given, waits before the first file arrives until the block is left."""
        reached, over, ports = threading.Event(), threading.Event(), []

        def wait(environ: dict[str, Any]) -> None:
            if environ["REQUEST_METHOD"] == "PUT" and environ["PATH_INFO"].startswith(f"/{target}/"):
                ports.append(int(environ["REMOTE_PORT"]))
                reached.set()
                over.wait(END_SECONDS)

        with self.store.failing(wait):
            asked = {"uri": f"s3://{target}/there", "token": f"{KEY_ID}:{KEY}"}
            answer = self.service.client.post(f"/v1/jobs/{job_id}/deliver", json=asked)
            assert answer.status_code == 202, answer.text
            assert reached.wait(END_SECONDS), self.service.logs()
            self.remember()
            yield next(process for process in self.seen if _has_port(process, ports[0]))
            over.set()

    def remember(self) -> None:
        """Take note of all processes of the workers, some of which a fault may part from the others."""
        self.seen.update(process for worker in self.workers for process in tree(worker.process))

    def worker_of(self, pid: int) -> Child:
        """The worker one of whose processes this is."""
        return next(worker for worker in self.workers if pid in [process.pid for process in tree(worker.process)])

    def replace(self, lost: Child) -> None:
        """Start a worker in the place of one that was killed."""
        self.workers[self.workers.index(lost)] = self.service.start_worker()

    def confined(self, job_id: str) -> list[psutil.Process]:
        """The confined processes of a job, which stay in its directory."""
        return [process for process in self.seen if _directory_of(process).startswith(f"{job_id}.")]

    def outcome(self, job_id: str) -> dict[str, Any]:
        """All that must not depend on what happened to a job meanwhile: its state, its trace, its model, its reports."""
        row, files = self.service.row(job_id), f"/v1/jobs/{job_id}/artifacts"
        told: dict[str, Any] = {"state": row["state"], "error": row["error"]}
        for file in self.service.client.get(files).json()["data"]:
            name = file["name"]
            if name.startswith(("model/", "plan.json")) and not name.endswith(".md"):
                told[name] = file["sha256"]
            elif name == "analysis.json":
                told[name] = _untimed(self.service.client.get(f"{files}/{name}").json())
        if row["kind"] != ANALYSIS:
            trace = self.service.client.get(f"/v1/jobs/{job_id}/trace?limit=1000").json()["data"]
            told["trace"] = _untimed(trace)
        return told

    def delivered(self, target: str) -> dict[str, str]:
        """The files of a bucket by name, as hashes."""
        found = self.store.client.list_objects_v2(Bucket=target).get("Contents", [])
        read = {one["Key"]: self.store.client.get_object(Bucket=target, Key=one["Key"])["Body"].read() for one in found}
        return {name.removeprefix("there/"): sha256_of(content) for name, content in read.items()}

    def told(self, job_id: str) -> dict[str, Any]:
        """What is known of the delivery of a job."""
        handover = self.service.row(job_id)["handover"]
        assert isinstance(handover, dict)
        return handover

    def clean_twice(self) -> None:
        """Two janitors at once, beside those of the workers, when nothing that is left is young any more."""
        for path in (self.service.directory / "var").rglob("*"):
            with suppress(FileNotFoundError):
                os.utime(path, (0, 0), follow_symlinks=False)
        command = [sys.executable, "-m", "worker.janitor"]
        both = [
            subprocess.Popen(command, env=self.service.environment, stdout=subprocess.PIPE, text=True) for _ in range(2)
        ]
        for one in both:
            said, _ = one.communicate(timeout=READY_SECONDS)
            assert one.returncode == 0, said

    def left(self) -> dict[str, Any]:
        """What nobody owns, or what is not done: rows, contents, files, processes, messages."""
        checked = subprocess.run(
            [sys.executable, "-m", "store.check"],
            env=self.service.environment,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        *lines, _, _, _, _ = checked.stdout.splitlines()
        contents = [
            line for line in lines if not line.startswith(("audit_chain: whole", "audit_waiting: ", "audit_head: "))
        ]
        with psycopg.connect(self.service.postgres.url) as connection:
            (rows,) = connection.execute(_LEFT_ROWS).fetchone() or (None,)
        owned = {process for worker in self.workers for process in tree(worker.process)}
        var = self.service.directory / "var"
        return {
            "rows": rows,
            "contents": contents,
            "files": [str(path) for room in ("work", "spool") for path in (var / room).glob("*")],
            "processes": [process for process in self.seen if process not in owned and _lives(process)],
            "messages": self.broker().llen(_QUEUE),
        }

    def broker(self) -> Any:
        """A client of Valkey."""
        from redis import Redis

        return Redis.from_url(self.service.valkey.url)


def _directory_of(process: psutil.Process) -> str:
    try:
        return next((part for part in Path(process.cwd()).parts if part.startswith("job_")), "")
    except psutil.Error:
        return ""


def _has_port(process: psutil.Process, port: int) -> bool:
    try:
        return any(one.laddr.port == port for one in process.net_connections())
    except psutil.Error:
        return False


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _untimed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _untimed(one) for name, one in value.items() if name not in _TIMED}
    return [_untimed(one) for one in value] if isinstance(value, list) else value


@contextmanager
def matrix(directory: Path) -> Iterator[Matrix]:
    """The service, with its inputs uploaded and two workers that are ready."""
    store = ObjectStore()
    storage = f"s3://{store.new_bucket()}/files"
    environment = {**_ENVIRONMENT, **store.environment, "AXFORMER_STORAGE": storage}
    try:
        with service(directory, environment) as made:
            with psycopg.connect(made.postgres.url) as connection:
                connection.execute(_STOP)
            ready = Matrix(made, store, _bodies(made, directory))
            ready.workers += made.start_workers(2)
            yield ready
    finally:
        store.stop()


def _bodies(made: Service, directory: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(save_tiny_checkpoint(directory / "checkpoint"), arcname=".")
    sent = {"checkpoint": _upload(made, "checkpoint.tar", packed.getvalue())}
    for name, count in (("validation", 40), ("train", 60)):
        rows = write_rows(directory / f"{name}.jsonl", tiny_rows(count, seed=count)).read_bytes()
        sent[name] = _upload(made, f"{name}.jsonl", rows)
    run = {"name": "hit", "preset": "paper", "config": {"accept_poor_model": True}, "forms": ["compact"], **sent}
    analysis = {"name": "hit", "reports": ["cka"], "checkpoint": sent["checkpoint"], "validation": sent["validation"]}
    lessons = {"finetune": {"epochs": 2, "batch_size": 10, "learning_rate": 1e-3}}
    return {TRAINING: ("/v1/jobs", run | lessons), ANALYSIS: ("/v1/analyses", analysis)}


def _upload(made: Service, name: str, content: bytes) -> dict[str, str]:
    answer = made.client.post("/v1/uploads", files={"file": (name, content)})
    assert answer.status_code == 201, answer.text
    return {"uri": f"upload:{answer.json()['id']}"}
