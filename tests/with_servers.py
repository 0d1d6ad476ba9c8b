"""Run a command with its own PostgreSQL and Valkey: ``python -m tests.with_servers COMMAND [ARGUMENT ...]``.

The command finds them in DATABASE_URL and BROKER_URL, with the schema in place. Both are removed with their data when it
ends; its exit status becomes this program's.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pydantic import SecretStr

from store.embedded.postgres import start_postgres
from store.embedded.server import running
from store.embedded.valkey import start_valkey
from store.migrate import migrate
from store.settings import Settings


def run(command: list[str]) -> int:
    """Run the command with its own servers and return its exit status."""
    with tempfile.TemporaryDirectory(prefix="axformer-") as name:
        directory = Path(name)
        with (
            running(start_postgres(directory / "postgres", directory / "postgres.log")) as database,
            running(start_valkey(directory / "valkey", directory / "valkey.log")) as broker,
        ):
            migrate(Settings(database_url=SecretStr(database.url)))
            environment = dict(os.environ) | {"DATABASE_URL": database.url, "BROKER_URL": broker.url}
            return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m tests.with_servers COMMAND [ARGUMENT ...]")
    sys.exit(run(sys.argv[1:]))
