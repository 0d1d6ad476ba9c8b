"""Pausing and resuming over HTTP, and many jobs cancelled in one request."""

JOB = "/v1/jobs/{}"


def cancel(api, **body):
    answer = api.post("/v1/jobs/cancel", json=body)
    assert answer.status_code == 200, answer.text
    return {item["id"]: item for item in answer.json()["data"]}


def state(api, job_id):
    return api.get(JOB.format(job_id)).json()["state"]


def test_a_job_is_paused_and_resumed(api, stage):
    queued = stage.queued()
    paused = api.post(JOB.format(queued) + "/pause")
    assert (paused.status_code, paused.json()["state"]) == (202, "paused")
    assert api.post(JOB.format(queued) + "/pause").json() == paused.json()
    assert api.get("/v1/queue").json()["data"] == []
    assert api.get("/v1/queue").json()["counts"]["paused"] == 1
    running = stage.running()
    assert api.post(JOB.format(running) + "/pause").json()["state"] == "pausing"
    early = api.post(JOB.format(running) + "/resume")
    assert (early.status_code, early.json()["code"]) == (409, "wrong_state")
    for _ in range(2):
        resumed = api.post(JOB.format(queued) + "/resume")
        assert (resumed.status_code, resumed.json()["state"]) == (202, "queued")


def test_jobs_are_cancelled_by_id_and_each_is_answered_for(api, stage, client, rivals):
    done, queued = stage.succeeded({}), stage.queued()
    unknown = "job_" + "0" * 32
    outcomes = cancel(api, ids=[queued, done, unknown])
    assert (outcomes[queued]["state"], outcomes[queued]["error"]) == ("cancelled", None)
    assert (outcomes[done]["state"], outcomes[done]["error"]["code"]) == ("succeeded", "wrong_state")
    assert (outcomes[unknown]["state"], outcomes[unknown]["error"]["code"]) == (None, "job_not_found")
    assert api.get(JOB.format(done)).json()["cancel_requested_at"] is None
    ours = stage.queued()
    theirs = client.post("/v1/jobs/cancel", json={"ids": [ours]}, headers=rivals.headers).json()
    assert theirs["data"][0]["error"]["code"] == "job_not_found"
    assert state(api, ours) == "queued"


def test_jobs_are_cancelled_by_label_and_state(api, stage):
    running = stage.running(labels={"project": "reviews"})
    reviews = [stage.queued(labels={"project": "reviews"}) for _ in range(3)]
    api.post(JOB.format(reviews[0]) + "/pause")
    other = stage.queued(labels={"project": "other"})
    assert set(cancel(api, labels={"project": "reviews"}, states=["paused"])) == {reviews[0]}
    outcomes = cancel(api, labels={"project": "reviews"})
    assert {job_id: item["state"] for job_id, item in outcomes.items()} == {
        running: "cancelling",
        reviews[1]: "cancelled",
        reviews[2]: "cancelled",
    }
    assert cancel(api, labels={"project": "reviews"}) == {}
    assert set(cancel(api, states=["queued"])) == {other}
    assert cancel(api, ids=[other], labels={"project": "x"})[other]["error"]["code"] == "job_not_found"


def test_a_request_that_names_nothing_is_refused(api):
    for body in ({}, {"ids": []}, {"ids": [f"job_{number}" for number in range(501)]}, {"labels": {}}):
        assert api.post("/v1/jobs/cancel", json=body).status_code == 422
