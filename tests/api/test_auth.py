"""When a key is asked for and what becomes of its use; ``test_access`` tries every route."""

from sqlalchemy import select

from store.repositories.keys import revoke_key
from store.session import session_scope
from store.tables.teams import ApiKey


def test_a_key_works_until_it_is_revoked_and_its_use_is_noted(client, crew, sessions):
    assert client.get("/v1/jobs", headers=crew.headers).status_code == 200
    with session_scope(sessions) as session:
        key = session.scalars(select(ApiKey).where(ApiKey.team_id == crew.id)).one()
        assert key.last_used_at is not None
        revoke_key(session, key.id)
    assert client.get("/v1/jobs", headers=crew.headers).status_code == 401


def test_a_bad_key_is_refused_before_a_bad_body(client):
    assert client.post("/v1/jobs", json={"nonsense": True}, headers={"Authorization": "Bearer x"}).status_code == 401
