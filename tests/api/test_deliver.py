"""A job says where its result is to go; the token goes in and is not seen again."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select, text
from structlog.testing import capture_logs

from store.repositories import leases, moves, steering
from store.repositories.handovers import claim_handover, fail_handover, finish_handover
from store.session import session_scope
from store.signing import open_vault
from store.states import JobState
from store.tables.jobs import Job
from tests.api.test_hub_tokens import everything_stored

HUB = {"uri": "hf://acme/small", "token": "hf_canary"}
BUCKET = {"uri": "s3://acme-models/small", "token": "ID:canary"}


@pytest.mark.parametrize("place", [HUB, BUCKET])
def test_a_job_says_where_its_result_goes(api, body, place, database_url, sessions):
    with capture_logs() as logs:
        answer = api.post("/v1/jobs", json=body | {"deliver": place})
        job = api.get(f"/v1/jobs/{answer.json()['id']}").json()
    assert (job["deliver"]["uri"], job["deliver"]["state"]) == (place["uri"], "waiting")
    assert "canary" not in answer.text + repr(logs) + everything_stored(database_url)
    with session_scope(sessions) as session:
        assert claim_handover(session, 60, most=5) is None


def test_a_finished_job_is_delivered_on_request_and_says_how_far_that_is(api, stage, settings, sessions, client):
    job_id = stage.succeeded({"plan.json": b"{}"})
    path = f"/v1/jobs/{job_id}"
    assert api.get(path).json()["deliver"] is None
    assert api.post(f"{path}/deliver", json=HUB).json()["deliver"]["state"] == "waiting"
    with session_scope(sessions) as session:
        claimed = claim_handover(session, 60, most=5)
        assert open_vault(settings).unlock(claimed.token) == "hf_canary"
    assert api.get(path).json()["deliver"]["state"] == "sending"
    with session_scope(sessions) as session:
        fail_handover(session, claimed, {"code": "target_refused", "message": "no <b>access</b>"}, retry_in=None)
    told = api.get(path).json()["deliver"]
    assert (told["state"], told["error"]["code"], told["attempts"]) == ("failed", "target_refused", 1)
    assert api.get(f"{path}/events?limit=50").json()["data"][-1]["type"] == "job.not_delivered"

    api.post(f"{path}/deliver", json=BUCKET)
    with session_scope(sessions) as session:
        finish_handover(session, claim_handover(session, 60, most=5), files=3, bytes=12)
    told = api.get(path).json()["deliver"]
    assert (told["uri"], told["state"], told["files"], told["error"]) == (BUCKET["uri"], "done", 3, None)


@pytest.mark.parametrize(
    ("place", "pointer"),
    [
        ({"uri": "https://acme.example/x", "token": "x"}, "#/uri"),
        ({"uri": "hf://datasets/acme/rows/x", "token": "x"}, "#/uri"),
        ({"uri": "s3://B/x", "token": "a:b"}, "#/uri"),
        ({"uri": "s3://acme-models/x", "token": "canary"}, "#/token"),
        ({"uri": "hf://acme/x", "token": "can ary"}, "#/token"),
        ({"uri": "hf://acme/x"}, "#/token"),
    ],
)
def test_what_cannot_be_used_is_refused_and_not_repeated(api, stage, body, place, pointer):
    job_id = stage.succeeded({"plan.json": b"{}"})
    answer = api.post(f"/v1/jobs/{job_id}/deliver", json=place)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)
    assert "canary" not in answer.text
    posted = api.post("/v1/jobs", json=body | {"deliver": place})
    assert (posted.status_code, posted.json()["errors"][0]["pointer"]) == (422, pointer.replace("#", "#/deliver"))
    assert "can ary" not in posted.text


def test_a_job_without_files_is_not_delivered(api, stage):
    answer = api.post(f"/v1/jobs/{stage.failed()}/deliver", json=HUB)
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")


@pytest.mark.parametrize(("end", "status"), [("fails", 409), ("is deleted", 404)])
def test_a_job_that_ends_at_this_moment_is_not_delivered_and_keeps_no_token(api, stage, sessions, end, status):
    job_id = stage.failed() if end == "is deleted" else stage.running()
    if end == "is deleted":
        api.post(f"/v1/jobs/{job_id}/retry")
        api.post(f"/v1/jobs/{job_id}/pause")
    with ThreadPoolExecutor(1) as threads, session_scope(sessions) as session:
        job = moves.lock_job(session, job_id)
        answer = threads.submit(api.post, f"/v1/jobs/{job_id}/deliver", json=HUB)
        wait_for_lock(sessions)
        if end == "is deleted":
            moves.move_job(session, job, JobState.CANCELLED)
            steering.delete_job(session, job_id)
        else:
            leases.finish_failed(session, job_id, job.fence, {"code": "x", "message": "x", "retryable": False})
        session.commit()
        assert answer.result().status_code == status
    with session_scope(sessions) as session:
        assert session.scalars(select(Job.handover_token).where(Job.handover_token.is_not(None))).all() == []


def wait_for_lock(sessions):
    """Wait until another connection waits for a lock."""
    waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    while True:
        with session_scope(sessions) as session:
            if session.scalar(waiting):
                return
        time.sleep(0.01)


def test_the_schema_says_that_a_token_is_only_written(api):
    fields = api.get("/openapi.json").json()["components"]["schemas"]["DeliverTo"]["properties"]
    assert fields["token"]["writeOnly"]
