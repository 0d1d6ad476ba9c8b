"""The first key is made once and kept where only its owner can read it."""

import stat
from pathlib import Path

import pytest

from store.repositories.keys import authenticate, revoke_key
from store.serve.__main__ import FIRST_TEAM, ServeFile, keep_or_make_key, read_serve_file, write_serve_file
from store.session import Sessions, session_scope
from store.settings import Settings
from store.tables.teams import Team

CONTENT = ServeFile("http://127.0.0.1:8000", "axk_1_2", "postgresql://x", "redis://y")


def test_the_file_is_private_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "serve.json"
    for content in (CONTENT, ServeFile("http://127.0.0.1:8001", "k", "d", "b")):
        write_serve_file(path, content)
        assert read_serve_file(path) == content
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": "x"}', '{"other": 1}', "null"])
def test_a_damaged_file_counts_as_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "serve.json"
    assert read_serve_file(path) is None
    path.write_text(text)
    assert read_serve_file(path) is None


def test_a_key_is_kept_while_it_is_valid(settings: Settings, sessions: Sessions) -> None:
    first = keep_or_make_key(settings, None)
    assert keep_or_make_key(settings, first) == first
    with session_scope(sessions) as session:
        caller = authenticate(session, first)
        assert caller is not None
        assert caller.team_name == FIRST_TEAM
        revoke_key(session, caller.key_id)
    second = keep_or_make_key(settings, first)
    assert second != first
    with session_scope(sessions) as session:
        again = authenticate(session, second)
        assert again is not None
        assert again.team_id == caller.team_id
        assert session.get_one(Team, again.team_id).grants == ["s3://*", "hf://*"]
