"""Keys over HTTP: made, listed, replaced and revoked by a team's admins, and what is noted of it."""

from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from sqlalchemy import update

from axformer.wire.scopes import Scope
from store.repositories.keys import create_key
from store.session import session_scope
from store.tables.teams import ApiKey
from tests.serving import serving


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def make(api, name="laptop", **more) -> dict:
    answer = api.post("/v1/keys", json={"name": name} | more)
    assert answer.status_code == 201, answer.text
    return answer.json()


def own_id(api) -> str:
    return api.get("/v1/me").json()["key"]["id"]


def let_expire(sessions, key_id: str) -> None:
    with session_scope(sessions) as session:
        past = datetime.now(UTC) - timedelta(seconds=1)
        session.execute(update(ApiKey).where(ApiKey.id == key_id).values(expires_at=past))


def test_me_says_whose_the_key_is_and_what_it_may_do(api, crew):
    me = api.get("/v1/me").json()
    assert me["team"] == {"id": crew.id, "name": "crew"}
    assert me["key"]["id"] == crew.key.split("_")[1]
    assert (me["key"]["name"], me["key"]["scopes"]) == ("test", ["read", "write", "admin"])
    assert me["key"]["expires_at"] is None


def test_a_key_is_shown_once_and_works(api):
    made = make(api, "pipeline", scopes=["read", "write"])
    assert made["key"].startswith(f"axk_{made['id']}_")
    me = api.get("/v1/me", headers=bearer(made["key"])).json()["key"]
    assert (me["id"], me["scopes"]) == (made["id"], ["read", "write"])
    listed = api.get("/v1/keys")
    assert made["key"].rpartition("_")[2] not in listed.text
    assert [key["name"] for key in listed.json()["data"]] == ["pipeline", "test"]


@pytest.mark.parametrize(
    ("given", "held"),
    [(None, ["read", "write"]), (["read"], ["read"]), (["admin", "read"], ["read", "write", "admin"])],
)
def test_a_scope_includes_those_before_it(api, given, held):
    assert make(api, **({} if given is None else {"scopes": given}))["scopes"] == held


def test_pages_show_every_key_once_the_newest_first(api):
    made = [make(api, f"key {number}")["id"] for number in range(6)]
    seen, after = [], None
    while after != "":
        page = api.get("/v1/keys", params={"limit": 3} | ({"after": after} if after else {})).json()
        seen += [key["id"] for key in page["data"]]
        after = page["next"] if page["has_more"] else ""
    assert seen == [*reversed(made), own_id(api)]


@pytest.mark.parametrize("after", ["nothing", "0" * 16, "\x00"])
def test_a_page_after_what_is_no_key_is_refused(api, after):
    assert api.get("/v1/keys", params={"after": after}).status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "x", "scopes": []},
        {"name": "x", "scopes": ["root"]},
        {"name": "x", "expires_at": "2001-01-01T00:00:00Z"},
        {"name": "x", "expires_at": "2101-01-01T00:00:00"},
        {"name": "x", "team": "rivals"},
    ],
)
def test_what_is_no_key_is_refused(api, body):
    assert api.post("/v1/keys", json=body).status_code == 422


def test_a_key_ends_when_it_is_said_to(api, sessions):
    ends = datetime.now(UTC) + timedelta(days=1)
    made = make(api, expires_at=ends.isoformat())
    assert datetime.fromisoformat(made["expires_at"]) == ends
    assert api.get("/v1/me", headers=bearer(made["key"])).status_code == 200
    let_expire(sessions, made["id"])
    refused = api.get("/v1/me", headers=bearer(made["key"]))
    assert (refused.status_code, "has expired" in refused.json()["detail"]) == (401, True)


def test_no_key_ends_in_a_year_that_cannot_be_read_again(api):
    refused = api.post("/v1/keys", json={"name": "x", "expires_at": "9999-12-31T23:59:59-23:59"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "#/expires_at")
    made = api.post("/v1/keys", json={"name": "x", "expires_at": "9999-12-31T23:59:59Z"}).json()
    rotated = api.post(f"/v1/keys/{made['id']}/rotate")
    assert (rotated.status_code, rotated.json()["expires_at"][:4]) == (201, "9999")
    assert len(api.get("/v1/keys").json()["data"]) == 3


def test_a_replaced_key_stays_valid_for_a_while(api, sessions):
    old = make(api, "pipeline", scopes=["read"])
    new = api.post(f"/v1/keys/{old['id']}/rotate").json()
    assert (new["name"], new["scopes"], new["expires_at"]) == ("pipeline", ["read"], None)
    assert (new["replaces"]["id"], new["replaces"]["replaced_by"]) == (old["id"], new["id"])
    left = datetime.fromisoformat(new["replaces"]["expires_at"]) - datetime.now(UTC)
    assert timedelta(hours=23) < left <= timedelta(hours=24)
    for key in (old, new):
        assert api.get("/v1/me", headers=bearer(key["key"])).status_code == 200
    let_expire(sessions, old["id"])
    assert api.get("/v1/me", headers=bearer(old["key"])).status_code == 401


def test_a_key_is_replaced_at_once_by_one_that_lasts_as_long(api):
    ends = datetime.now(UTC) + timedelta(days=90)
    old = make(api, expires_at=ends.isoformat())
    new = api.post(f"/v1/keys/{old['id']}/rotate", json={"grace_hours": 0}).json()
    assert api.get("/v1/me", headers=bearer(old["key"])).status_code == 401
    assert abs(datetime.fromisoformat(new["expires_at"]) - ends) < timedelta(hours=1)


def test_only_the_newest_of_a_row_of_keys_is_replaced(api):
    old = make(api)
    new = api.post(f"/v1/keys/{old['id']}/rotate").json()
    again = api.post(f"/v1/keys/{old['id']}/rotate")
    assert (again.status_code, again.json()["code"]) == (409, "key_replaced")
    assert new["id"] in again.json()["detail"]
    assert api.delete(f"/v1/keys/{new['id']}").status_code == 204
    gone = api.post(f"/v1/keys/{new['id']}/rotate")
    assert (gone.status_code, gone.json()["code"]) == (409, "key_not_valid")


def test_a_revoked_key_is_refused_and_stays_listed(api):
    made = make(api)
    for _ in range(2):
        assert api.delete(f"/v1/keys/{made['id']}").status_code == 204
    assert api.get("/v1/me", headers=bearer(made["key"])).status_code == 401
    assert api.get("/v1/keys").json()["data"][0]["revoked_at"] is not None


def test_the_last_key_for_admins_goes_only_where_that_is_meant(api, sessions, crew):
    mine = own_id(api)
    make(api, scopes=["write"])
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    make(api, scopes=["admin"], expires_at=soon)  # ends before mine does
    refused = api.delete(f"/v1/keys/{mine}")
    assert (refused.status_code, refused.json()["code"]) == (409, "last_admin_key")
    other = make(api, scopes=["admin"])
    assert api.delete(f"/v1/keys/{mine}").status_code == 204
    alone = bearer(other["key"])
    assert api.delete(f"/v1/keys/{other['id']}", headers=alone).status_code == 409
    assert api.delete(f"/v1/keys/{other['id']}?even_last=true", headers=alone).status_code == 204
    with session_scope(sessions) as session:  # as the operator
        rescue = create_key(session, crew.id, "rescue", Scope.ADMIN).text
    assert api.get("/v1/keys", headers=bearer(rescue)).status_code == 200


def test_keys_of_others_are_not_there(api, rivals):
    mine = own_id(api)
    for method, path in (("POST", f"/v1/keys/{mine}/rotate"), ("DELETE", f"/v1/keys/{mine}")):
        for key_id in (mine, "0" * 16, "nothing"):
            answer = api.request(method, path.replace(mine, key_id), headers=rivals.headers)
            assert (answer.status_code, answer.json()["code"]) == (404, "key_not_found")
    assert api.get("/v1/keys", params={"after": mine}, headers=rivals.headers).status_code == 422
    assert api.get("/v1/me").status_code == 200


def test_what_a_key_changes_is_noted_with_whose_it_is_and_from_where(api, crew, rivals, body):
    mine = own_id(api)
    job = api.post("/v1/jobs", json=body).json()["id"]
    made = make(api)["id"]
    api.post(f"/v1/jobs/{job}/cancel")
    api.get(f"/v1/jobs/{job}")
    api.delete(f"/v1/jobs/{job}")
    upload = api.post("/v1/uploads", files={"file": ("data.csv", b"x")}).json()["id"]
    api.delete("/v1/jobs/job_0")  # changes nothing
    entries = api.get("/v1/audit").json()["data"]
    assert [(entry["action"], entry["object_id"]) for entry in entries] == [
        ("upload.create", upload),
        ("job.delete", job),
        ("job.cancel", job),
        ("key.create", made),
        ("job.create", job),
    ]
    assert {(entry["key_id"], entry["address"], entry["times"]) for entry in entries} == {(mine, "testclient", 1)}
    first = api.get("/v1/audit", params={"limit": 2}).json()
    rest = api.get("/v1/audit", params={"limit": 50, "after": first["next"]}).json()
    assert first["data"] + rest["data"] == entries
    assert (first["has_more"], rest["has_more"]) == (True, False)
    assert api.get("/v1/audit", headers=rivals.headers).json()["data"] == []


def test_refused_keys_are_counted_in_one_entry_an_hour(api, crew):
    made = make(api)
    wrong = f"axk_{made['id']}_{64 * '0'}"
    for _ in range(5):
        assert api.get("/v1/jobs", headers=bearer(wrong)).status_code == 401
    unknown = f"axk_{16 * '0'}_{64 * '0'}"
    assert api.get("/v1/jobs", headers=bearer(unknown)).status_code == 401
    refused = [entry for entry in api.get("/v1/audit").json()["data"] if entry["action"] == "key.refused"]
    assert {entry["key_id"] for entry in refused} == {made["id"]}
    assert len(refused) <= 2  # where an hour has just begun
    assert sum(entry["times"] for entry in refused) == 5
    metrics = api.get("/metrics").text
    assert 'axformer_refused_keys_total{reason="wrong"} 5.0' in metrics
    assert 'axformer_refused_keys_total{reason="unknown"} 1.0' in metrics


@pytest.mark.parametrize(
    ("trusted", "sent", "noted"),
    [
        ("10.0.0.0/8", "203.0.113.9", "127.0.0.1"),
        ("127.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("127.0.0.1", "198.51.100.1, 203.0.113.9", "203.0.113.9"),  # the first was made up by who sent it
        ("127.0.0.1,10.0.0.0/8", "198.51.100.1, 203.0.113.9, 10.1.2.3", "203.0.113.9"),
    ],
)
def test_an_address_is_what_the_last_trusted_proxy_says(app, crew, monkeypatch, trusted, sent, noted):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
    with serving(app) as url:
        httpx2.post(f"{url}/v1/keys", json={"name": "ci"}, headers=crew.headers | {"X-Forwarded-For": sent})
        (entry,) = httpx2.get(f"{url}/v1/audit", headers=crew.headers).json()["data"]
    assert (entry["action"], entry["address"]) == ("key.create", noted)
