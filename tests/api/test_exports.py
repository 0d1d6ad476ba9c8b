"""Exports: a model on the path of a finished job becomes a job of its own, with the trace up to there."""

import pytest

from axformer.config import make_config
from axformer.plan.trial import Verdict
from store.repositories.jobs import hub_token_of
from store.repositories.trials import all_trials
from store.session import session_scope

PROGRESS = {"done": 5, "known": 9, "seconds": 1.0, "seconds_left": 2.0, "base_loss": 0.5, "min_loss": 0.2}
PROGRESS |= {"estimated_speedup": 1.5, "operations": 7, "inputs": {"checkpoint": "c", "validation": "v"}}


@pytest.fixture
def done(stage, make_trial):
    """A job whose trials 0, 2 and 4 stand."""
    trials = [make_trial(seq, **({"verdict": Verdict.ACCEPT} if seq in (2, 4) else {})) for seq in range(6)]
    job_id = stage.running(trials, PROGRESS, name="reviews", config={"order": "auto"}, labels={"project": "reviews"})
    stage.succeed(job_id, {"plan.json": b"{}"})
    return job_id


def export(api, job_id, seq, body=None, **headers):
    return api.post(f"/v1/jobs/{job_id}/path/{seq}/export", json=body or {}, headers=headers)


def test_it_is_a_job_with_the_trace_up_to_there(api, done, sessions):
    answer = export(api, done, 2, {"forms": ["onnx"]})
    job = answer.json()
    assert (answer.status_code, answer.headers["Location"]) == (202, f"/v1/jobs/{job['id']}")
    assert (job["exported_from"], job["upto"], job["state"], job["name"]) == (done, 2, "queued", "trial 2 of reviews")
    assert (job["forms"], job["labels"]) == (["compact", "onnx"], {"project": "reviews"})
    source = api.get(f"/v1/jobs/{done}").json()
    assert (source["kind"], source["exported_from"], source["upto"]) == ("pass", None, None)
    assert job["kind"] == "export"
    assert [one["id"] for one in api.get("/v1/jobs?kind=export").json()["data"]] == [job["id"]]
    assert [one["id"] for one in api.get("/v1/jobs?kind=pass").json()["data"]] == [done]
    assert len(api.get("/v1/jobs?kind=pass&kind=export").json()["data"]) == 2
    assert api.get("/v1/jobs?kind=search").status_code == 422
    for same in ("checkpoint", "validation", "test", "preset", "config", "priority", "device"):
        assert job[same] == source[same]
    assert (job["progress"]["done"], job["progress"]["known"], job["progress"]["estimated_speedup"]) == (3, 3, None)
    with session_scope(sessions) as session:
        theirs, ours = (list(all_trials(session, one, chunk=9)) for one in (done, job["id"]))
    assert ours == theirs[:3]


def test_of_a_compressed_model_it_is_calibrated_alike_and_has_no_order(api, stage, make_trial):
    trials = [make_trial(seq, **({"verdict": Verdict.ACCEPT} if seq else {})) for seq in range(3)]
    config = make_config("smallest").model_dump(mode="json")
    sources = {"preset": "smallest", "config": config, "calibrate": {"uri": "s3://acme/texts.csv"}}
    job_id = stage.running(trials, PROGRESS, name="small", **sources)
    stage.succeed(job_id, {"plan.json": b"{}"})
    job = export(api, job_id, 1).json()
    assert (job["kind"], job["upto"], job["config"]) == ("export", 1, config)
    assert job["calibrate"] == {"uri": "s3://acme/texts.csv"}


def test_sent_again_it_is_made_once(api, done):
    first = export(api, done, 2, **{"Idempotency-Key": "once"})
    again = export(api, done, 2, **{"Idempotency-Key": "once"})
    assert (again.headers["Idempotent-Replayed"], again.text) == ("true", first.text)
    assert export(api, done, 4, **{"Idempotency-Key": "once"}).json()["code"] == "idempotency_key_reused"
    assert export(api, done, 0, {"name": "as it came"}).json()["name"] == "as it came"
    api.delete(f"/v1/jobs/{done}")
    later = export(api, done, 2, **{"Idempotency-Key": "once"})
    assert (later.status_code, later.text, later.headers["Idempotent-Replayed"]) == (202, first.text, "true")
    assert export(api, done, 2, **{"Idempotency-Key": "another"}).status_code == 404


def test_retried_it_keeps_its_trace(api, done, sessions):
    job_id = export(api, done, 4).json()["id"]
    api.post(f"/v1/jobs/{job_id}/cancel")
    assert api.post(f"/v1/jobs/{job_id}/retry").json()["progress"]["done"] == 5
    with session_scope(sessions) as session:
        assert len(list(all_trials(session, job_id, chunk=9))) == 5


def test_what_made_no_model_is_not_exported(api, done, stage):
    for seq in (1, 9):
        assert export(api, done, seq).json()["code"] == "point_not_found"
    waiting = stage.queued()
    assert export(api, waiting, 0).json()["code"] == "wrong_state"
    assert export(api, "job_none", 0).status_code == 404


def test_a_job_that_does_not_say_what_it_worked_on_is_not_exported(api, stage, make_trial):
    job_id = stage.succeeded({"plan.json": b"{}"}, [make_trial(0)])
    assert export(api, job_id, 0).json()["code"] == "inputs_unknown"


def test_an_upload_that_is_gone_is_named(api, stage, make_trial):
    sent = api.post("/v1/uploads", files={"file": ("dev.csv", b"text,label\n")}).json()
    job_id = stage.running([make_trial(0)], PROGRESS, validation={"uri": sent["uri"]}, config={"order": "auto"})
    stage.succeed(job_id, {})
    assert api.delete(f"/v1/uploads/{sent['id']}").status_code == 204
    refused = export(api, job_id, 0)
    assert (refused.status_code, refused.json()["code"]) == (409, "upload_gone")
    assert f"the validation of {job_id} was '{sent['uri']}'" in refused.json()["detail"]
    assert [job["id"] for job in api.get("/v1/jobs").json()["data"]] == [job_id]


def test_a_token_is_locked_again(api, done, sessions):
    job_id = export(api, done, 2, {"hub_token": "hf_canary"}).json()["id"]
    with session_scope(sessions) as session:
        assert b"canary" not in (hub_token_of(session, job_id) or b"canary")
