"""Who may ask: keys, and what is answered without one."""

import pytest
from sqlalchemy import select

from store.repositories.keys import revoke_key
from store.session import session_scope
from store.tables.teams import ApiKey

PROTECTED = [
    ("GET", "/v1/jobs"),
    ("POST", "/v1/jobs"),
    ("GET", "/v1/queue"),
    ("POST", "/v1/uploads"),
    ("GET", "/v1/uploads/upl_1"),
    ("DELETE", "/v1/uploads/upl_1"),
    ("GET", "/v1/metrics"),
    ("GET", "/metrics"),
]


def test_without_a_valid_key_there_is_a_challenge(client, crew, subtests):
    wrong = crew.key[:-1] + ("0" if crew.key[-1] != "0" else "1")
    headers = [
        None,
        "",
        "Bearer",
        "Bearer x",
        f"Basic {crew.key}",
        f"Bearer {wrong}",
        "Bearer axk_\x00",
        f"Bearer {crew.key}x",
    ]
    for method, path in PROTECTED:
        for header in headers:
            with subtests.test(method=method, path=path, header=header):
                answer = client.request(method, path, headers={"Authorization": header} if header is not None else {})
                assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
                assert answer.headers["WWW-Authenticate"].startswith('Bearer realm="axformer"')
                assert "axk" not in answer.text.replace("axk_...", "")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/v1/healthz", "/v1/readyz", "/v1/knobs", "/openapi.json"])
def test_what_is_no_teams_needs_no_key(client, path):
    assert client.get(path).status_code == 200


def test_a_key_works_until_it_is_revoked_and_its_use_is_noted(client, crew, sessions):
    assert client.get("/v1/jobs", headers=crew.headers).status_code == 200
    with session_scope(sessions) as session:
        key = session.scalars(select(ApiKey).where(ApiKey.team_id == crew.id)).one()
        assert key.last_used_at is not None
        revoke_key(session, key.id)
    assert client.get("/v1/jobs", headers=crew.headers).status_code == 401


def test_a_bad_key_is_refused_before_a_bad_body(client):
    assert client.post("/v1/jobs", json={"nonsense": True}, headers={"Authorization": "Bearer x"}).status_code == 401
