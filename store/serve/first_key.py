"""The first team and its key, made on the first start and kept in ``serve.json``, where programs find them."""

import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from axformer.wire.scopes import Scope
from store.repositories.keys import authenticate, create_key
from store.repositories.teams import create_team, find_team
from store.session import make_engine, make_sessions, session_scope
from store.settings import Settings

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
    """The stored key if the database still accepts it, otherwise a new key of the first team."""
    engine = make_engine(settings)
    try:
        with session_scope(make_sessions(engine)) as session:
            if kept is not None and authenticate(session, kept) is not None:
                return kept
            team = find_team(session, FIRST_TEAM) or create_team(session, FIRST_TEAM)
            return create_key(session, team.id, "made by make serve", Scope.ADMIN).text
    finally:
        engine.dispose()
