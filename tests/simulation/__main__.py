"""The long version: ``python -m tests.simulation --runs 2000``, or one seed again: ``--first 123 --runs 1``.

Prints how often what happened, and each seed that broke an invariant.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from store.embedded.postgres import start_postgres
from store.embedded.server import running
from tests.conftest import UNSAFE_AND_FAST
from tests.simulation.seeds import run_seeds


def main() -> int:
    """The command; 1 where an invariant was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first run")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    broken: list[str] = []
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="axformer-simulation-") as made:
        directory = Path(made)
        server = start_postgres(directory / "postgres", directory / "postgres.log", UNSAFE_AND_FAST)
        with running(server), ProcessPoolExecutor(given.processes, get_context("spawn")) as pool:
            last = given.first + given.runs
            parts = [range(given.first + part, last, given.processes) for part in range(given.processes)]
            names = [f"axformer_test_simulation_{part}" for part in range(given.processes)]
            for counted, failures in pool.map(run_seeds, [server.url] * len(parts), names, parts):
                counts += counted
                broken += failures
    seconds = time.monotonic() - begun
    for failure in broken:
        print(f"BROKEN {failure}")
    print(f"{given.runs} runs from seed {given.first} in {seconds:.0f} s, {len(broken)} of them broken")
    for what, often in sorted(counts.items()):
        print(f"  {what:20} {often:8}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
