"""What hits a job of the matrix in its middle: deaths of processes, of servers, and of what one takes for granted."""

import os
import shutil
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil
import psycopg
from psycopg import sql

from store.embedded.postgres import programs
from store.system.processes import LOOPBACK, free_port, spawn
from store.tables.schema import metadata
from tests.faults.faults import kill_holder, pid_of
from tests.faults.matrix import ANALYSIS, DELIVERY, EXPORT, TRAINING, Act, Matrix
from tests.faults.service import END_SECONDS, READY_SECONDS, is_ready, kill_tree, wait_until
from tests.object_store import Fault, always

Hit = Callable[[Matrix, str, Act], None]
"""Hits a job whose worker waits, and may let it go on."""
_SHIFT = "a clock that jumps"
_NO_STORAGE = "the service's storage does not answer; the job goes on when it does"


def kill_confined(matrix: Matrix, job_id: str, _: Act) -> None:
    """``kill -9`` of the confined process, as when the machine has no memory left."""
    confined = matrix.confined(job_id)
    assert confined, "no process of the job was found"
    for process in confined:
        with suppress(psutil.NoSuchProcess):  # it has ended with the first
            process.kill()


def kill_child(matrix: Matrix, job_id: str, _: Act) -> None:
    """``kill -9`` of the worker's process that has the job."""
    kill_holder(matrix.service.row(job_id))


def kill_main(matrix: Matrix, job_id: str, _: Act) -> None:
    """``kill -9`` of the worker's main process alone, whose processes are to end by themselves."""
    worker = matrix.worker_of(pid_of(matrix.service.row(job_id)))
    worker.process.kill()
    worker.process.wait()
    matrix.replace(worker)


def restart_postgres(matrix: Matrix, _: str, __: Act) -> None:
    """PostgreSQL is stopped in the usual way and started again."""
    process = matrix.service.postgres.child.process
    process.send_signal(signal.SIGINT)
    process.wait()
    matrix.service.restart_postgres()


def flush_valkey(matrix: Matrix, _: str, go_on: Act) -> None:
    """Valkey forgets everything and stays; a job that is posted then is done too."""
    matrix.broker().flushall()
    go_on()
    second = matrix.service.wait_until_ended(matrix.post(ANALYSIS))
    assert second["state"] == "succeeded", second["error"]


def fail_storage(matrix: Matrix, job_id: str, go_on: Act) -> None:
    """The storage answers 500 until the job waits for it."""
    with matrix.store.failing(always(Fault(500, "InternalError"))):
        go_on()
        row = matrix.service.wait_for(job_id, lambda row: row["status_reason"] == _NO_STORAGE)
        assert row["status_reason"] == _NO_STORAGE, row


def jump(hours: int) -> Hit:
    """The clocks of the database and of the workers' disks jump: all that they have noted moves the other way.

    But for the audit log, which is chained as it was written.
    """

    def hit(matrix: Matrix, _: str, go_on: Act) -> None:
        url = matrix.service.postgres.url
        with psycopg.connect(url, autocommit=True, application_name=_SHIFT) as connection:
            shift = threading.Thread(target=_shift, args=(connection, hours))
            shift.start()
            wait_until(lambda: _waits(url), END_SECONDS, matrix.service.postgres.child.log)  # for the job's row
            go_on()
            shift.join()
        for path in (matrix.service.directory / "var").rglob("*"):
            with suppress(FileNotFoundError):
                status = path.lstat()
                times = (status.st_atime - 3600 * hours, status.st_mtime - 3600 * hours)
                os.utime(path, times, follow_symlinks=False)

    return hit


def _shift(connection: psycopg.Connection, hours: int) -> None:
    """Each table in a transaction of its own, the one of the jobs first: others lock it before the rest, too."""
    moving = [table for table in metadata.sorted_tables if table.name != "audit"]
    for table in sorted(moving, key=lambda table: table.name != "jobs"):
        times = [column.name for column in table.columns if getattr(column.type, "timezone", False)]
        moved = [
            sql.SQL("{0} = {0} - make_interval(hours => {1})").format(sql.Identifier(name), hours) for name in times
        ]
        if moved:
            connection.execute(
                sql.SQL("UPDATE {} SET {}").format(sql.Identifier(table.name), sql.SQL(", ").join(moved))
            )


def _waits(url: str) -> bool:
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = 'Lock'"
    with psycopg.connect(url) as connection:
        return connection.execute(query, [_SHIFT]).fetchone() == (1,)


class Promotion:
    """A standby of PostgreSQL that takes its place, and its address, when it is killed."""

    def __init__(self, matrix: Matrix) -> None:
        """Make the standby; from then on no commit is told that it does not have."""
        primary, self._port = matrix.service.postgres, free_port()
        directory, log = matrix.service.directory / "postgres", matrix.service.directory / "log" / "standby.log"
        user = "nobody" if os.geteuid() == 0 else ""
        (directory / "standby").mkdir(mode=0o700)
        if user:
            shutil.chown(directory / "standby", user)
        command = [programs() / "pg_basebackup", "-D", directory / "standby", "-R", "-c", "fast", "-d", primary.url]
        copied = spawn("pg_basebackup", command, log=log, directory=directory, user=user)
        assert copied.process.wait(READY_SECONDS) == 0, copied.log_tail()
        options = {
            "listen_addresses": LOOPBACK,
            "unix_socket_directories": "",
            "port": self._port,
            "max_connections": 200,
        }
        arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        command = [programs() / "postgres", "-D", directory / "standby", *arguments]
        standby = spawn("standby", command, log=log, directory=directory, user=user, stop_signal=signal.SIGINT)
        matrix.service.exit.callback(standby.stop, READY_SECONDS)
        self._standby = standby
        with psycopg.connect(primary.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
            state = "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'"
            wait_until(lambda: connection.execute(state).fetchone() == ("sync",), READY_SECONDS, log)

    def __call__(self, matrix: Matrix, _: str, __: Act) -> None:
        """Let the standby take over."""
        primary = matrix.service.postgres
        port = psycopg.conninfo.conninfo_to_dict(primary.url)["port"]
        kill_tree(primary.child.process)
        with psycopg.connect(primary.url.replace(f":{port}/", f":{self._port}/"), autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")
        matrix.service.start("moved", "tests.faults.gate", str(port), str(self._port), "0")
        wait_until(lambda: is_ready(matrix.service.client), READY_SECONDS, self._standby.log)


@dataclass(frozen=True)
class Scored:
    """What became of a job that was hit."""

    what: str
    kind: str
    attempts: int
    is_equal: bool
    """Whether its outcome is that of an undisturbed one."""


HITS: Mapping[str, Callable[[Matrix], Hit]] = {
    "kill -9 of the confined process": lambda _: kill_confined,
    "kill -9 of the job's process": lambda _: kill_child,
    "kill -9 of the main process": lambda _: kill_main,
    "storage answers 500": lambda _: fail_storage,
    "clock an hour ahead": lambda _: jump(1),
    "clock an hour back": lambda _: jump(-1),
    "Valkey flushed": lambda _: flush_valkey,
    "PostgreSQL restarted": lambda _: restart_postgres,
    "PostgreSQL's standby promoted": Promotion,
}
"""The last one can be done once."""


def undisturbed(matrix: Matrix) -> dict[str, dict[str, Any]]:
    """The outcome of each kind of job that nobody hits; an export is of the last model of the path, the result."""
    first = matrix.service.wait_until_ended(matrix.post(TRAINING))["id"]
    last = matrix.service.client.get(f"/v1/jobs/{first}/path").json()["data"][-1]["seq"]
    matrix.bodies[EXPORT] = (f"/v1/jobs/{first}/path/{last}/export", {})
    second = matrix.service.wait_until_ended(matrix.post(ANALYSIS))["id"]
    trained = matrix.outcome(first)
    exported = trained | {"trace": trained["trace"][: last + 1]}
    return {TRAINING: trained, EXPORT: exported, ANALYSIS: matrix.outcome(second), DELIVERY: {"of": first}}


def hit(matrix: Matrix, what: str, kind: str, expected: Mapping[str, Any]) -> Scored:
    """Hit a job of a kind, and compare what becomes of it."""
    act = HITS[what](matrix)
    with matrix.stopped(kind) as (job_id, go_on):
        act(matrix, job_id, go_on)
    row = matrix.service.wait_until_ended(job_id)
    outcome = matrix.outcome(job_id)
    return Scored(what, kind, row["attempt"], outcome == expected)


def hit_delivery(matrix: Matrix, job_id: str) -> Scored:
    """``kill -9`` of the worker that delivers a result; another one delivers all of it."""
    target = matrix.store.new_bucket()
    with matrix.sending(job_id, target) as sender:
        worker = matrix.worker_of(sender.pid)
        worker.process.kill()
        worker.process.wait()
        matrix.replace(worker)
    wait_until(lambda: matrix.told(job_id)["state"] in ("done", "failed"), END_SECONDS, worker.log)
    told = matrix.told(job_id)
    files = matrix.service.client.get(f"/v1/jobs/{job_id}/artifacts").json()["data"]
    expected = {file["name"]: file["sha256"] for file in files if not file["name"].endswith(".tar.gz")}
    is_equal = told["state"] == "done" and matrix.delivered(target) == expected
    return Scored("kill -9 of the main process", DELIVERY, told["attempts"], is_equal)
