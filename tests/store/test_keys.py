"""A key opens what it was made for, and nothing else does."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select
from sqlalchemy.orm import Session

from axformer.wire.scopes import Scope
from store.repositories import keys
from store.repositories.keys import KEY_PREFIX, NewKey, Reason, Refusal, authenticate
from store.session import Sessions, session_scope
from store.tables.teams import ApiKey, Team


@pytest.fixture
def key(sessions: Sessions, team: Team) -> NewKey:
    """A key of ``team``."""
    with session_scope(sessions) as session:
        return keys.create_key(session, team.id, "laptop")


def test_a_key_names_its_team(sessions: Sessions, team: Team, key: NewKey) -> None:
    with session_scope(sessions) as session:
        caller = authenticate(session, key.text)
    assert caller is not None
    assert (caller.team_id, caller.team_name, caller.key_id) == (team.id, "crew", key.id)


def test_of_the_secret_only_the_hash_is_kept(sessions: Sessions, key: NewKey) -> None:
    prefix, key_id, secret = key.text.split("_")
    assert prefix == KEY_PREFIX
    assert len(bytes.fromhex(secret)) == 32
    with session_scope(sessions) as session:
        row = session.get(ApiKey, key_id)
        kept = session.execute(select(ApiKey.__table__)).one()
    assert row is not None
    assert row.secret_sha256 == hashlib.sha256(secret.encode()).digest()
    assert secret not in str(kept)


def test_wrong_keys_open_nothing(sessions: Sessions, key: NewKey) -> None:
    last = "0" if key.text[-1] != "0" else "1"
    wrong = [
        "",
        "axk",
        key.text[:-1],
        key.text[:-1] + last,
        key.text + "0",
        key.text.upper(),
        f" {key.text}",
        f"{key.text}\n",
    ]
    other_id = f"{KEY_PREFIX}_{'0' * 16}_{key.text.split('_')[2]}"
    with session_scope(sessions) as session:
        assert [authenticate(session, text) for text in [*wrong, other_id]] == [None] * 9


@given(text=st.text())
def test_any_other_text_is_refused_before_the_database_is_asked(text: str) -> None:
    assert authenticate(Session(), text) is None  # a session without a database


def test_a_revoked_key_opens_nothing(sessions: Sessions, key: NewKey) -> None:
    with session_scope(sessions) as session:
        keys.revoke_key(session, key.id)
    with session_scope(sessions) as session:
        assert authenticate(session, key.text) is None
        row = session.get(ApiKey, key.id)
    assert row is not None
    assert row.revoked_at is not None


def test_use_is_noted_but_not_at_every_request(sessions: Sessions, key: NewKey) -> None:
    def last_used() -> datetime | None:
        with session_scope(sessions) as session:
            return session.scalars(select(ApiKey.last_used_at)).one()

    assert last_used() is None
    uses = []
    for _ in range(2):
        with session_scope(sessions) as session:
            authenticate(session, key.text)
        uses.append(last_used())
    assert uses[0] is not None
    assert uses[0] == uses[1]


def test_nobody_waits_to_note_a_use(sessions: Sessions, key: NewKey) -> None:
    with session_scope(sessions) as admin, session_scope(sessions) as session:
        admin.get_one(ApiKey, key.id, with_for_update=True)  # as one who revokes it at this moment
        assert authenticate(session, key.text) is not None
    with session_scope(sessions) as session:
        assert session.get_one(ApiKey, key.id).last_used_at is None
        assert authenticate(session, key.text) is not None
        session.expire_all()
        assert session.get_one(ApiKey, key.id).last_used_at is not None


def test_a_refused_key_says_why_and_whose_it_seems_to_be(sessions: Sessions, team: Team, key: NewKey) -> None:
    past = datetime.now(UTC) - timedelta(seconds=1)
    wrong = f"{key.text[:-64]}{64 * '0'}"
    with session_scope(sessions) as session:
        ended = keys.create_key(session, team.id, "ended", expires_at=past)
        gone = keys.create_key(session, team.id, "gone")
        keys.revoke_key(session, gone.id)
    unknown = f"{KEY_PREFIX}_{16 * '0'}_{64 * '0'}"
    with session_scope(sessions) as session:
        found = [keys.recognise(session, text) for text in (unknown, wrong, gone.text, ended.text)]
    assert found == [
        Refusal(Reason.UNKNOWN),
        Refusal(Reason.WRONG, key.id, team.id),
        Refusal(Reason.REVOKED, gone.id, team.id),
        Refusal(Reason.EXPIRED, ended.id, team.id),
    ]


def test_scopes_include_those_before_them() -> None:
    assert Scope.READ.included == (Scope.READ,)
    assert Scope.ADMIN.included == tuple(Scope)
    assert [[held.includes(other) for other in Scope] for held in Scope] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
