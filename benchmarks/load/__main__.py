"""How quick the API is under load: ``python -m benchmarks.load [--seconds 60]``; ``--reads`` for 300 reads a second.

Starts a PostgreSQL, a Valkey and an API as ``make serve`` does, fills the queue, and puts load on it: 2,000 queued jobs of
20 teams, 50 pollers, 20 readers of event streams, a trace of 50,000 trials, and workers that claim and write. All of it,
this program too, shares the machine. Times are those of requests that were served; what was shed or has failed is counted.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
from pydantic import SecretStr

from benchmarks.load.queue import bytes_of, fill_queue
from benchmarks.load.traffic import FAILED, READS, SHED, Measured, put_load
from store.embedded.postgres import start_postgres
from store.embedded.server import running
from store.embedded.valkey import start_valkey
from store.migrate import migrate
from store.serve.stack import Program, Stack
from store.session import make_engine, make_sessions
from store.setting_groups import MIB
from store.settings import Settings
from store.system.processes import LOOPBACK, Child, free_port

_PERCENTILES = (50, 95, 99)
READY_SECONDS = 60.0
STOP_SECONDS = 10.0
WARM_SECONDS = 3.0
"""Load before the measured one, in which code is imported and plans are made."""


@contextmanager
def serving(directory: Path, processes: int) -> Iterator[tuple[str, dict[str, str], dict[str, Child]]]:
    """An API on a database and a broker of its own: its address, and the environment and the programs of its service."""
    with (
        running(start_postgres(directory / "postgres", directory / "postgres.log")) as postgres,
        running(start_valkey(directory / "valkey", directory / "valkey.log")) as valkey,
        Stack() as stack,
    ):
        environment = dict(os.environ) | {
            "DATABASE_URL": postgres.url,
            "BROKER_URL": valkey.url,
            "AXFORMER_VAR_DIR": str(directory / "var"),
        }
        migrate(Settings(database_url=SecretStr(postgres.url)))
        port = free_port()
        arguments = ["api.server", "--host", LOOPBACK, "--port", str(port)]
        arguments += ["--workers", str(processes)] if processes > 1 else []
        stack.add_program(Program("api", arguments, directory / "api.log", environment, STOP_SECONDS))
        stack.wait_until_ready(port, READY_SECONDS)
        programs = {"API": stack.impatient_for[0], "PostgreSQL": postgres.child, "Valkey": valkey.child}
        yield f"http://{LOOPBACK}:{port}", environment, programs


def memory(programs: Mapping[str, Child]) -> dict[str, int]:
    """MiB that each program and its processes have for themselves."""
    trees = {name: psutil.Process(child.process.pid) for name, child in programs.items()}
    return {
        name: sum(one.memory_full_info().uss for one in (root, *root.children(recursive=True))) // MIB
        for name, root in trees.items()
    }


def report(measured: Measured, claims: Sequence[float], sizes: Mapping[str, float], seconds: float) -> str:
    """Milliseconds of each kind of request and of claims, and bytes of rows."""
    milliseconds = dict(sorted(measured.milliseconds.items()))
    rest = {kind: milliseconds.pop(kind) for kind in (SHED, FAILED) if kind in milliseconds}
    served = [value for values in milliseconds.values() for value in values]
    count = len(served) + sum(map(len, rest.values()))
    lines = [
        f"{count / seconds:.0f} requests a second for {seconds:.0f} s; streams told {measured.events} events",
        "",
        "| ms | requests | p50 | p95 | p99 |",
        "|---|---|---|---|---|",
    ]
    for kind, values in {**milliseconds, "all that were served": served, **rest, "claim": claims}.items():
        percentiles = " | ".join(f"{value:.1f}" for value in np.percentile(values, _PERCENTILES))
        lines.append(f"| {kind} | {len(values)} | {percentiles} |")
    lines += ["", "| table | bytes a row, with indices |", "|---|---|"]
    lines += [f"| {table} | {size:.0f} |" for table, size in sizes.items()]
    return "\n".join(lines)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1, help="of the API")
    parser.add_argument(
        "--reads", action="store_true", help="300 reads a second in the place of the usual 100 requests"
    )
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="axformer-load-") as made,
        serving(Path(made), given.processes) as (url, environment, programs),
    ):
        engine = make_engine(Settings(database_url=SecretStr(environment["DATABASE_URL"])))
        sessions = make_sessions(engine)
        queue = fill_queue(sessions)
        sizes = bytes_of(sessions)
        kinds = READS if given.reads else None
        asyncio.run(put_load(url, queue, WARM_SECONDS, given.seed, kinds))
        before = memory(programs)
        command = [sys.executable, "-m", "benchmarks.load.workers", str(given.seconds)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as workers:
            measured = asyncio.run(put_load(url, queue, given.seconds, given.seed + 1, kinds))
            answer, _ = workers.communicate()
        print(report(measured, json.loads(answer), sizes, given.seconds), "\n\n| MiB | start | end |\n|---|---|---|")
        print("\n".join(f"| {name} | {before[name]} | {size} |" for name, size in memory(programs).items()))
        engine.dispose()
    return 0


if __name__ == "__main__":
    sys.exit(main())
