"""What exceeds a team's limits is refused with the figures, also when many ask at once."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from store.repositories.teams import TeamLimits, set_limits, use_of
from store.session import session_scope


@pytest.fixture
def limit(sessions, crew):
    """Sets the crew's limits."""

    def to(**limits):
        with session_scope(sessions) as session:
            set_limits(session, crew.id, TeamLimits(**limits))

    return to


def send(api, size, name="data.csv"):
    return api.post("/v1/uploads", files={"file": (name, b"x" * size)})


def test_no_more_jobs_are_queued_than_the_team_may_have(api, body, limit):
    limit(queued=2)
    first = api.post("/v1/jobs", json=body, headers={"Idempotency-Key": "once"}).json()["id"]
    assert api.post("/v1/jobs", json=body | {"config": {"order": "random"}}).status_code == 202
    refused = api.post("/v1/jobs", json=body)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")
    problem = refused.json()
    assert (problem["code"], problem["used"], problem["limit"]) == ("queued_limit", 2, 2)
    assert "your team has 2 queued jobs and may have 2; wait" in problem["detail"]
    again = api.post("/v1/jobs", json=body, headers={"Idempotency-Key": "once"})
    assert (again.status_code, again.json()["id"]) == (202, first)
    api.post(f"/v1/jobs/{first}/cancel")
    assert api.post("/v1/jobs", json=body).status_code == 202
    assert api.post(f"/v1/jobs/{first}/retry").status_code == 429
    assert api.get(f"/v1/jobs/{first}").json()["state"] == "cancelled"


def test_the_limit_holds_however_many_post_at_once(api, body, limit, sessions, crew):
    limit(queued=3)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: api.post("/v1/jobs", json=body).status_code, range(12)))
    assert (answers.count(202), answers.count(429)) == (3, 9)
    with session_scope(sessions) as session:
        assert use_of(session, crew.id).queued == 3


def test_no_more_bytes_are_stored_than_the_team_may_store(api, body, stage, limit, settings):
    stage.succeeded({"plan.json": b"x" * 300})
    limit(stored_bytes=1000)
    kept = send(api, 600).json()["id"]
    refused = send(api, 101)
    assert refused.status_code == 409
    problem = refused.json()
    assert (problem["code"], problem["used"], problem["limit"]) == ("stored_bytes_limit", 900, 1000)
    assert "stores 900 bytes and may store 1000; delete" in problem["detail"]
    assert send(api, 100).status_code == 201
    assert send(api, 1).status_code == 409
    full = api.post("/v1/jobs", json=body)
    assert (full.status_code, full.json()["code"]) == (409, "stored_bytes_limit")
    api.delete(f"/v1/uploads/{kept}")
    assert api.post("/v1/jobs", json=body).status_code == 202
    stored = [path for path in settings.storage_dir.rglob("*") if path.is_file()]
    assert sorted(path.stat().st_size for path in stored) == [100, 300]


def test_an_upload_that_no_limit_would_allow_is_too_large(api, limit, settings):
    limit(stored_bytes=10 * settings.upload_max_bytes)
    assert send(api, settings.upload_max_bytes + 1).status_code == 413


def test_bytes_stay_within_the_limit_however_many_send_at_once(api, limit, sessions, crew):
    limit(stored_bytes=1000)

    def sent(_: int) -> int:
        while (status := send(api, 300).status_code) == 429:  # a team has some of the places for uploads, not all
            time.sleep(0.05)
        return status

    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(sent, range(6)))
    assert (answers.count(201), answers.count(409)) == (3, 3)
    with session_scope(sessions) as session:
        assert use_of(session, crew.id).stored_bytes == 900


def test_limits_are_of_one_team(api, body, limit, client, rivals):
    limit(queued=0, stored_bytes=0)
    assert api.post("/v1/jobs", json=body).status_code == 429
    assert client.post("/v1/jobs", json=body, headers=rivals.headers).status_code == 202
