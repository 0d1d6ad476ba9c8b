"""The long version: ``python -m tests.contract --calls 5000``, or one seed again: ``--first 7 --calls 1``.

Prints how many calls had which answer, and each answer that the OpenAPI document does not have.
"""

import argparse
import logging
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from store.embedded.postgres import create_database, start_postgres
from store.embedded.server import running
from store.embedded.valkey import start_valkey
from store.migrate import migrate
from tests.conftest import UNSAFE_AND_FAST, database_at
from tests.contract.calls import ALL_PHASES, make_calls, settings_at

EXAMPLES = 20
"""Calls of an operation and a phase in one round; a new seed finds more than more calls of the same one."""
DATABASE = "axformer_test_contract"


def main() -> int:
    """The command; 1 where an answer was off the document."""
    parser = argparse.ArgumentParser(prog="python -m tests.contract")
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first round")
    given = parser.parse_args()
    logging.disable(logging.WARNING)  # what is unexpected is an error
    calls, rounds, failures = 0, 0, {}
    statuses: Counter[int] = Counter()
    phases: Counter[str] = Counter()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="axformer-contract-") as made:
        directory = Path(made)
        with (
            running(start_postgres(directory / "postgres", directory / "postgres.log", UNSAFE_AND_FAST)) as postgres,
            running(start_valkey(directory / "valkey", directory / "valkey.log")) as valkey,
        ):
            create_database(postgres.url, DATABASE)
            settings = settings_at(database_at(postgres.url, DATABASE), valkey.url, directory / "var")
            migrate(settings)
            while calls < given.calls:
                outcome = make_calls(settings, seed=given.first + rounds, examples=EXAMPLES, phases=ALL_PHASES)
                calls, rounds = calls + outcome.calls, rounds + 1
                statuses += outcome.statuses
                phases += outcome.phases
                failures |= outcome.failures
    for where, what in failures.items():
        print(f"OFF THE DOCUMENT {where}\n{what}\n")
    print(
        f"{calls} calls in {rounds} rounds and {time.monotonic() - begun:.0f} s, {len(failures)} kinds of answers are off"
    )
    print("by phase: " + ", ".join(f"{name} {count}" for name, count in sorted(phases.items())))
    print("by status: " + ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items())))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
