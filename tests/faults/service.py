"""The whole service as processes that tests may kill: PostgreSQL, Valkey, the API and Celery workers."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import psutil
import psycopg
from psycopg.rows import dict_row
from pydantic import SecretStr

from store.embedded.postgres import start_postgres
from store.embedded.server import EmbeddedServer
from store.embedded.valkey import start_valkey
from store.migrate import migrate
from store.serve.__main__ import keep_or_make_key
from store.serve.stack import CHECKOUT
from store.settings import Settings
from store.states import TERMINAL
from store.system.processes import LOOPBACK, Child, free_port
from tests import forked

LEASE_SECONDS = 3.0
"""Short, so that a lost worker's job is taken over soon; long enough for a busy machine's heartbeat."""
READY_SECONDS = 180.0
END_SECONDS = 400.0
KILL_SECONDS = 60.0
ATTEMPTS = 20
"""Above the usual three, because a test may kill more workers than that."""
WORKER_THREADS = 1
_POLL_SECONDS = 0.01
_ENVIRONMENT = {
    "AXFORMER_LEASE_SECONDS": str(LEASE_SECONDS),
    "AXFORMER_HEARTBEAT_SECONDS": "0.2",
    "AXFORMER_ANNOUNCE_SECONDS": "0.2",
    "AXFORMER_TRIAL_BATCH_SECONDS": "0.05",
    "AXFORMER_TRIAL_BATCH": "5",
    "AXFORMER_MAX_ATTEMPTS": str(ATTEMPTS),
    "AXFORMER_DEVICE": "cpu",
    "AXFORMER_FETCH_KEEP_FREE_BYTES": "0",  # disks are as small as a few files here
    "OMP_NUM_THREADS": str(WORKER_THREADS),
    "PYTHONUNBUFFERED": "1",
}


@dataclass
class Service:
    """A running service, and hands to break it."""

    directory: Path
    postgres: EmbeddedServer
    valkey: EmbeddedServer
    environment: Mapping[str, str]
    client: httpx2.Client
    port: int
    exit: ExitStack
    names: Iterator[int] = field(default_factory=lambda: iter(range(10_000)))

    def start(self, name: str, *arguments: str, prefix: tuple[str, ...] = ()) -> Child:
        """Start one of the service's programs, perhaps by another program; it is killed at the end."""
        log, environment = self.directory / "log" / f"{name}.log", self.environment_of(name)
        command = [*prefix, sys.executable, "-m", *arguments]
        log.parent.mkdir(exist_ok=True)
        with log.open("ab") as output, forked.forking(nested=True):
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=CHECKOUT,
                env=environment,
                start_new_session=True,
            )
        self.exit.callback(kill_tree, process)
        return Child(name, process, log, signal.SIGTERM)

    def environment_of(self, name: str) -> Mapping[str, str]:
        """Variables of one of the programs; where none is named, it has a directory of its own, as on a host of its own."""
        if self.environment["AXFORMER_VAR_DIR"]:
            return self.environment
        return {**self.environment, "AXFORMER_VAR_DIR": str(self.directory / "hosts" / name)}

    def start_worker(self, prefix: tuple[str, ...] = ()) -> Child:
        """A Celery worker that is ready."""
        (child,) = self.start_workers(1, prefix)
        return child

    def start_workers(self, count: int, prefix: tuple[str, ...] = ()) -> list[Child]:
        """Celery workers that are ready, all started at once."""
        arguments = ("celery", "-A", "worker.celery_app", "worker", "--hostname")
        names = [f"worker-{next(self.names)}" for _ in range(count)]
        children = [self.start(name, *arguments, f"{name}@%h", prefix=prefix) for name in names]
        for child in children:
            wait_until(lambda child=child: " ready." in child.log.read_text(), READY_SECONDS, child.log)
        return children

    def post(self, body: Mapping[str, Any]) -> str:
        """Post a job and give its id."""
        answer = self.client.post("/v1/jobs", json=dict(body))
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def row(self, job_id: str) -> dict[str, Any]:
        """The job's row, and ``trials``, how many it has."""
        query = "SELECT *, (SELECT count(*) FROM trials WHERE job_id = id) AS trials FROM jobs WHERE id = %s"
        with psycopg.connect(self.postgres.url, row_factory=dict_row) as connection:
            found = connection.execute(query, [job_id]).fetchone()
        assert found is not None
        return found

    def wait_for(self, job_id: str, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The job's row as soon as the condition holds, or when the job has ended."""
        deadline = time.monotonic() + END_SECONDS
        query = "SELECT *, (SELECT count(*) FROM trials WHERE job_id = id) AS trials FROM jobs WHERE id = %s"
        with psycopg.connect(self.postgres.url, row_factory=dict_row, autocommit=True) as connection:
            while True:
                row = connection.execute(query, [job_id]).fetchone()
                assert row is not None
                if condition(row) or row["state"] in TERMINAL:
                    return row
                assert time.monotonic() < deadline, f"{row}\n{self.logs()}"
                time.sleep(_POLL_SECONDS)

    def wait_until_ended(self, job_id: str) -> dict[str, Any]:
        """The job's row when it has ended."""
        return self.wait_for(job_id, lambda _: False)

    def restart_postgres(self) -> None:
        """Start it again after it was killed, with the same data on the same port."""
        self._start_again(self.postgres, lambda: bool(self._answers()))

    def restart_valkey(self) -> None:
        """Start it again after it was killed, without anything that it held."""
        self._start_again(self.valkey, lambda: True)

    def logs(self) -> str:
        """The ends of all logs."""
        files = sorted((self.directory / "log").glob("*.log"))
        return "\n".join(f"--- {file.name}\n{file.read_text(errors='replace')[-3000:]}" for file in files)

    def _start_again(self, server: EmbeddedServer, answers: Callable[[], bool]) -> None:
        with server.child.log.open("ab") as log:
            process = subprocess.Popen(server.child.process.args, stdout=log, stderr=log, start_new_session=True)
        self.exit.callback(kill_tree, process)
        again = EmbeddedServer(replace(server.child, process=process), server.url)
        if server is self.postgres:
            self.postgres = again
        else:
            self.valkey = again
        wait_until(answers, READY_SECONDS, server.child.log)

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError), psycopg.connect(self.postgres.url, connect_timeout=2):
            return True
        return False


@contextmanager
def service(
    directory: Path, others: Mapping[str, str] | None = None, before: Callable[[Service], None] | None = None
) -> Iterator[Service]:
    """A service without a worker, with everything it keeps below ``directory``, killed at the end.

    Args:
        directory: of all its files.
        others: more variables of its programs.
        before: starts what the API needs.
    """
    with ExitStack() as exit:
        postgres = start_postgres(directory / "postgres", directory / "log" / "postgres.log")
        exit.callback(postgres.stop)
        valkey = start_valkey(directory / "valkey", directory / "log" / "valkey.log")
        exit.callback(valkey.stop)
        database_url = Settings(database_url=SecretStr(postgres.url))
        migrate(database_url)
        key, port = keep_or_make_key(database_url, None), free_port()
        environment = {
            **os.environ,
            **_ENVIRONMENT,
            "DATABASE_URL": postgres.url,
            "BROKER_URL": valkey.url,
            "AXFORMER_VAR_DIR": str(directory / "var"),
            "AXFORMER_FILE_ROOTS": str(directory),
            **(others or {}),
        }
        client = exit.enter_context(
            httpx2.Client(
                base_url=f"http://{LOOPBACK}:{port}",
                headers={"Authorization": f"Bearer {key}"},
                trust_env=False,
                timeout=30.0,
            )
        )
        made = Service(directory, postgres, valkey, environment, client, port, exit)
        if before is not None:
            before(made)
        api = made.start("api", "api.server", "--host", LOOPBACK, "--port", str(port))
        wait_until(lambda: is_ready(client), READY_SECONDS, api.log)
        yield made


def is_ready(client: httpx2.Client) -> bool:
    """Whether the API says that it is."""
    try:
        return client.get("/readyz").status_code == httpx2.codes.OK
    except httpx2.HTTPError:
        return False


def kill_tree(root: subprocess.Popen[bytes]) -> None:
    """``kill -9`` of a process and all that it has started, at once."""
    for process in tree(root):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    root.wait(KILL_SECONDS)


def tree(root: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """A process and all that it has started."""
    try:
        found = psutil.Process(root.pid)
        return [found, *found.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def wait_until(condition: Callable[[], bool], seconds: float, log: Path) -> None:
    """Wait, and show the log where it takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-5000:]
        time.sleep(_POLL_SECONDS)
