"""Analyses: posted like jobs, refused before they are queued where a report lacks what it needs, shown without a pass."""

from typing import get_args

import pytest

from api.services.event_stream import progress_of
from axformer.wire.analysis import ANALYSIS_FORMAT, ReportName, Reports
from axformer.wire.steps import Step, StepName
from store.repositories import leases
from store.repositories.jobs import find_standings, hub_token_of
from store.repositories.queue import recent_pass_seconds
from store.session import session_scope
from store.tables.jobs import Job

ADVICE = {
    "sentence": "Layers repeat each other.",
    "command": "axformer prune hf://acme/bert --data dev.csv --output out",
}
ANALYSIS = {"format": ANALYSIS_FORMAT, "reports": dict.fromkeys(get_args(ReportName)) | {"cka": {"advice": ADVICE}}}


@pytest.fixture
def wanted(body):
    return body | {"train": "s3://acme/train.csv", "against": "hf://acme/base"}


def post(api, body, **headers):
    return api.post("/v1/analyses", json=body, headers=headers)


def analyzed(api, stage, body):
    """An analysis that has succeeded."""
    job_id = post(api, body).json()["id"]
    stage.begin(job_id, progress={"done": 0, "known": 0, "seconds": 0.0})
    kept = {"comparison": None, **ANALYSIS}
    stage.succeed(job_id, {"analysis.html": b"<p>", "analysis.json": b"{}"}, **kept)
    return job_id


def test_the_reports_are_named_as_their_fields():
    assert get_args(ReportName) == tuple(Reports.model_fields)


def test_it_is_a_job_of_its_kind(api, wanted):
    more = {"reports": ["cka", "drift"], "rows": 300, "max_length": 64, "priority": 3, "labels": {"project": "reviews"}}
    answer = post(api, wanted | more)
    job = answer.json()
    assert (answer.status_code, answer.headers["Location"]) == (202, f"/v1/jobs/{job['id']}")
    assert (job["kind"], job["state"], job["analysis"]) == (
        "analysis",
        "queued",
        {"reports": ["cka", "drift"], "rows": 300},
    )
    assert (job["against"], job["train"]) == ({"uri": "hf://acme/base"}, {"uri": "s3://acme/train.csv"})
    assert (job["config"], job["forms"], job["priority"]) == ({"max_length": 64}, [], 3)
    assert (job["report"], job["findings"]) == (None, None)
    assert api.get(f"/v1/jobs/{job['id']}").json()["queue"]["position"] == 1
    assert [one["id"] for one in api.get("/v1/jobs?kind=analysis").json()["data"]] == [job["id"]]


def test_it_is_steered_like_any_job(api, body):
    path = f"/v1/jobs/{post(api, body).json()['id']}"
    assert [api.post(f"{path}/{verb}").json()["state"] for verb in ("pause", "resume", "cancel", "retry")] == [
        "paused",
        "queued",
        "cancelled",
        "queued",
    ]


def test_sent_again_it_is_made_once(api, body):
    once = {"Idempotency-Key": "once"}
    first, again = (post(api, body, **once) for _ in range(2))
    assert (again.headers["Idempotent-Replayed"], again.text) == ("true", first.text)
    assert post(api, body | {"rows": 7}, **once).json()["code"] == "idempotency_key_reused"
    assert api.post("/v1/jobs", json=body, headers=once).json()["code"] == "idempotency_key_reused"


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"reports": ["drift"]}, "#/against"),
        ({"reports": ["cka", "features"]}, "#/train"),
        ({"reports": ["speed"]}, "#/reports/0"),
        ({"reports": []}, "#/reports"),
        ({"rows": 1}, "#/rows"),
        ({"max_length": 2**31}, "#/max_length"),
        ({"against": "ftp://acme/base"}, "#/against/uri"),
        ({"hub_token": "hf_token", "checkpoint": "s3://acme/bert"}, "#/hub_token"),
        ({"config": {"method": "compress"}}, "#/config"),
    ],
)
def test_what_cannot_be_made_is_refused(api, body, change, pointer):
    answer = post(api, body | change)
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert api.get("/v1/jobs").json()["data"] == []


def test_an_upload_that_it_names_is_its_own_teams_and_is_kept(api, body, client, rivals):
    sent = api.post("/v1/uploads", files={"file": ("base.tar", b"x")}).json()
    theirs = post(api, body | {"against": sent["uri"]}, **rivals.headers)
    assert [error["pointer"] for error in theirs.json()["errors"]] == ["#/against/uri"]
    assert post(api, body | {"against": sent["uri"]}).status_code == 202
    assert api.delete(f"/v1/uploads/{sent['id']}").status_code == 409


def test_a_token_is_locked(api, body, sessions):
    job_id = post(api, body | {"hub_token": "hf_canary"}).json()["id"]
    with session_scope(sessions) as session:
        assert b"canary" not in (hub_token_of(session, job_id) or b"canary")


def test_done_it_has_findings_and_no_report(api, stage, body, sessions):
    job_id = analyzed(api, stage, body)
    job = api.get(f"/v1/jobs/{job_id}").json()
    assert (job["state"], job["outcome"], job["report"]) == ("succeeded", "done", None)
    assert job["findings"] == [{"report": "cka", **ADVICE}]
    assert api.get(f"/v1/jobs/{job_id}/path").json() == {"kept": None, "data": []}
    assert api.get(f"/v1/jobs/{job_id}/trace").json()["data"] == []
    assert api.get("/v1/jobs?outcome=done").json()["data"][0]["id"] == job_id
    assert api.get("/v1/jobs?outcome=target_missed").json()["data"] == []
    assert api.post(f"/v1/jobs/{job_id}/path/0/export").json()["code"] == "point_not_found"
    with session_scope(sessions) as session:
        assert list(recent_pass_seconds(session, 9)) == ["analysis"]


def test_its_progress_is_its_present_step(api, stage, body, sessions):
    job_id = post(api, body).json()["id"]
    stage.begin(job_id, progress={"done": 0, "known": 0, "seconds": 0.0, "seconds_left": None})
    step = Step(name=StepName.IMPORTANCE, done=3, known=8, seconds_left=20.0)
    with session_scope(sessions) as session:
        leases.set_step(session, job_id, session.get_one(Job, job_id).fence, step)
    progress = api.get(f"/v1/jobs/{job_id}").json()["progress"]
    assert (progress["step"]["done"], progress["seconds_left"]) == (3, None)  # more steps follow
    with session_scope(sessions) as session:
        told = progress_of(find_standings(session, [job_id])[job_id])
    assert (told.message, told.done) == ("measuring the importance of heads: 3 of 8, about 20 s left", None)
    assert api.get("/v1/queue").json()["data"][0]["ends_in_seconds"] is None
