"""Keys and the audit log, for admins alone."""

import re

import pytest

from axformer.wire.scopes import Scope
from store.repositories.deliveries import valid_secrets
from store.repositories.keys import authenticate, create_key, revoke_key
from store.session import session_scope
from store.signing import webhook_secret


@pytest.fixture
def admin(visitor, sessions, crew):
    with session_scope(sessions) as session:
        text = create_key(session, crew.id, "the admin's", Scope.ADMIN).text
    assert visitor.sign_in(text).status_code == 303
    return visitor


def key_in(text):
    return re.search(r'id="new-key">(axk_\w+)<', text)[1]


def caller(sessions, key):
    with session_scope(sessions) as session:
        return authenticate(session, key)


def test_a_key_is_made_shown_once_replaced_and_revoked(admin, sessions, crew):
    made = admin.post("/team/keys", admin.token("/team"), name="<pipeline>", scope="read", expires="2999-01-01")
    key = key_in(made.text)
    assert caller(sessions, key).scope is Scope.READ
    assert key not in admin.get("/team").text
    assert "&lt;pipeline&gt;" in admin.get("/team").text
    key_id = key.split("_")[1]
    second = key_in(admin.post(f"/team/keys/{key_id}/rotate", admin.token("/team")).text)
    assert caller(sessions, second).team_id == crew.id
    assert admin.post(f"/team/keys/{key_id}/revoke", admin.token("/team")).headers["location"] == "/team"
    assert caller(sessions, key) is None
    text = admin.get("/team").text
    for action in ("key.create", "key.rotate", "key.revoke"):
        assert action in text


def test_a_secret_of_webhooks_is_made_shown_once_and_deleted(admin, sessions, settings, crew):
    made = admin.post("/team/webhook-secrets", admin.token("/team"))
    (shown,) = re.findall(r'id="new-secret">(whsec_[^<]+)<', made.text)
    with session_scope(sessions) as session:
        (row,) = valid_secrets(session, crew.id)
        assert webhook_secret(settings, row.salt, row.key_fingerprint, row.sealed) == shown
    text = admin.get("/team").text
    assert shown not in text
    assert row.id in text
    where = f"/team/webhook-secrets/{row.id}/delete"
    assert admin.post(where, admin.token("/team")).headers["location"] == "/team"
    with session_scope(sessions) as session:
        assert list(valid_secrets(session, crew.id)) == []
    for action in ("webhook_secret.create", "webhook_secret.delete"):
        assert action in admin.get("/team").text


@pytest.mark.parametrize(
    "fields",
    [{"name": "", "scope": "read"}, {"name": "a", "scope": "all"}, {"name": "a", "scope": "read", "expires": "x"}],
)
def test_a_key_that_cannot_be_made_is_refused(admin, fields):
    assert admin.post("/team/keys", admin.token("/team"), **fields).status_code == 422


def test_the_last_key_for_admins_stays(admin, sessions, crew):
    with session_scope(sessions) as session:
        revoke_key(session, crew.key.split("_")[1])
    key_id = re.search(r"/team/keys/(\w+)/revoke", admin.get("/team").text.partition("the admin&#39;s")[2])[1]
    answer = admin.post(f"/team/keys/{key_id}/revoke", admin.token("/team"))
    assert answer.status_code == 409
    assert "the last for admins" in answer.text


def test_others_do_not_see_it(visitor, sessions, crew):
    with session_scope(sessions) as session:
        text = create_key(session, crew.id, "writer", Scope.WRITE).text
    member = visitor
    member.sign_in(text)
    assert member.get("/team").status_code == 403
    assert member.post("/team/keys", member.token("/"), name="a", scope="admin").status_code == 403
    assert 'href="/team"' not in member.get("/").text
