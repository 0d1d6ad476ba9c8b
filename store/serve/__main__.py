"""The whole service on one machine: ``python -m store.serve [--port PORT]``, which is what ``make serve`` runs.

Starts PostgreSQL and Valkey (unless DATABASE_URL and BROKER_URL name others), migrates, makes a first team and key, starts
the API and one worker, and stays until Ctrl-C or until one of them ends. Only processes are started: no code of the API or
the worker is imported.
"""

import argparse
import fcntl
import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from pydantic import SecretStr, ValidationError
from sqlalchemy.exc import SQLAlchemyError

from axformer.wire.scopes import Scope
from store.embedded.postgres import start_postgres
from store.embedded.valkey import start_valkey
from store.errors import StackError, StoppedError, StoreError
from store.migrate import migrate
from store.repositories.keys import authenticate, create_key
from store.repositories.teams import create_team, find_team
from store.serve.stack import CHECKOUT, Program, Stack
from store.session import open_sessions, session_scope
from store.settings import Settings, StackSettings
from store.system.processes import LOOPBACK, is_free

DEFAULT_PORT = 8000
_PORTS_TRIED = 100
"""Ports from the default on that are tried before giving up."""
_PRIVATE_DIRECTORY = 0o700
_GREETING = """
AxFormer is running.

  address   {content.url}
  API key   {content.api_key}
  both in   {path}
  logs in   {logs}

  curl -H "Authorization: Bearer {content.api_key}" {content.url}/v1/jobs

Ctrl-C ends it.
"""


FIRST_TEAM = "default"
_PRIVATE_FILE = 0o600


@dataclass(frozen=True)
class ServeFile:
    """The content of ``serve.json``: where the running service is, and a key to it."""

    url: str
    api_key: str
    database_url: str
    broker_url: str


def read_serve_file(path: Path) -> ServeFile | None:
    """Read what the last start wrote; None if the file is missing or unusable."""
    try:
        return ServeFile(**json.loads(path.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def write_serve_file(path: Path, content: ServeFile) -> None:
    """Replace the file at once; only its owner may read it."""
    incoming = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(incoming, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE_FILE), "w") as file:
        json.dump(asdict(content), file, indent=2)
        file.write("\n")
    incoming.replace(path)


def keep_or_make_key(settings: Settings, kept: str | None) -> str:
    """The stored key if the database still accepts it, otherwise a new key of the first team, which may use all credentials:
    they are those of whoever starts the service."""
    with open_sessions(settings) as sessions, session_scope(sessions) as session:
        team = find_team(session, FIRST_TEAM) or create_team(session, FIRST_TEAM)
        team.grants = ["s3://*", "hf://*"]
        if kept is not None and authenticate(session, kept) is not None:
            return kept
        return create_key(session, team.id, "made by make serve", Scope.ADMIN).text


def serve(given: StackSettings) -> None:
    """Run everything; does not return normally.

    Raises:
        StoppedError: a signal has come, and all is stopped.
        StoreError: something could not start or has ended, and all is stopped.
    """
    var = (CHECKOUT / given.var_dir).resolve()
    logs, kept_in = var / "log", var / "serve.json"
    var.mkdir(parents=True, exist_ok=True)
    logs.mkdir(mode=_PRIVATE_DIRECTORY, exist_ok=True)
    with _only_one(var), Stack() as stack:
        database_url, broker_url = _start_servers(stack, given, var)
        settings = Settings(database_url=SecretStr(database_url), broker_url=SecretStr(broker_url), var_dir=var)
        migrate(settings)
        kept = read_serve_file(kept_in)
        key = keep_or_make_key(settings, kept.api_key if kept else None)
        port = choose_port(given.port)
        content = ServeFile(f"http://{LOOPBACK}:{port}", key, database_url, broker_url)
        for program in _programs(given, content, var):
            stack.add_program(program)
        stack.wait_until_ready(port, given.ready_seconds)
        write_serve_file(kept_in, content)
        _say(_GREETING.format(content=content, path=kept_in, logs=logs))
        try:
            stack.watch()
        finally:
            _say("\nStopping; a second Ctrl-C does not wait for a job to be given back.\n")


def choose_port(wanted: int | None) -> int:
    """The wanted port, or the first free one from 8000 on if none is given.

    Raises:
        StackError: the port is in use.
    """
    if wanted is not None and not is_free(wanted):
        raise StackError(f"port {wanted} is taken; choose another with PORT=..., or none to get a free one")
    free = (port for port in range(DEFAULT_PORT, DEFAULT_PORT + _PORTS_TRIED) if is_free(port))
    chosen = wanted or next(free, None)
    if chosen is None:
        raise StackError(f"the {_PORTS_TRIED} ports from {DEFAULT_PORT} on are taken; choose another with PORT=...")
    return chosen


def _start_servers(stack: Stack, given: StackSettings, var: Path) -> tuple[str, str]:
    """Addresses of the database and the broker; embedded ones are started if none are given."""
    if given.database_url is not None:
        database_url = given.database_url.get_secret_value()
    else:
        database_url = stack.add_server(partial(start_postgres, var / "postgres", var / "log" / "postgres.log"))
    if given.broker_url is not None:
        return database_url, given.broker_url.get_secret_value()
    return database_url, stack.add_server(partial(start_valkey, var / "valkey", var / "log" / "valkey.log"))


def _programs(given: StackSettings, content: ServeFile, var: Path) -> list[Program]:
    """The worker and the API, in the order in which they are started."""
    environment = dict(os.environ) | {
        "DATABASE_URL": content.database_url,
        "BROKER_URL": content.broker_url,
        "AXFORMER_VAR_DIR": str(var),
        "PYTHONUNBUFFERED": "1",
    }
    if given.file_roots is None and given.database_url is None:
        environment["AXFORMER_FILE_ROOTS"] = "/"
    celery = ["celery", "-A", "worker.celery_app", "worker", "--loglevel", "INFO"]
    port = content.url.rpartition(":")[2]
    api = ["api.server", "--host", LOOPBACK, "--port", port]
    return [
        Program(name, arguments, var / "log" / f"{name}.log", environment, given.stop_seconds)
        for name, arguments in (("worker", celery), ("api", api))
    ]


@contextmanager
def _only_one(var: Path) -> Iterator[None]:
    """Lock the directory for this process."""
    with (var / "serve.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StackError(f"the service already runs in {var}; its address is in {var / 'serve.json'}") from None
        yield


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def main() -> int:
    """Run the command; return 0 if it was asked to end, 1 if something went wrong."""
    parser = argparse.ArgumentParser(prog="python -m store.serve", description="Run the whole service on this machine.")
    parser.add_argument("--port", type=int, help=f"port of the API; by default {DEFAULT_PORT} or the next free one")
    chosen = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
    try:
        serve(StackSettings(**chosen))
    except StoppedError:
        _say("Stopped.\n")
        return 0
    except (StoreError, SQLAlchemyError, ValidationError) as error:
        sys.stderr.write(f"axformer serve: {error}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
