"""A search of orders as its team sees it: one job whose passes follow each other, and which shows one of their traces."""

import pytest
from jsonschema import Draft202012Validator

from store.repositories import claims, leases
from store.session import session_scope
from store.states import JobState

NDJSON = {"Accept": "application/x-ndjson"}
PROGRESS = {
    "done": 5,
    "known": 120,
    "seconds": 5.0,
    "seconds_left": 115.0,
    "base_loss": 0.5,
    "first_look": "40 rows",
    "min_loss": 0.4,
    "operations": 900,
    "estimated_speedup": 1.1,
    "pass_number": 2,
    "passes": 6,
    "order": "top-bottom-middle",
    "step": None,
}


@pytest.fixture
def searching(api, body, sessions, make_trial):
    """A search whose second pass runs."""
    posted = api.post("/v1/jobs", json=body | {"config": {"order": "search"}}).json()
    with session_scope(sessions) as session:
        job = claims.claim_next(session, "worker", 60)
        for state in (JobState.VALIDATING, JobState.RUNNING):
            leases.set_state(session, job.id, job.fence, state)
        for number, length in ((1, 3), (2, 2)):
            trials = [make_trial(seq, loss=float(number)) for seq in range(length)]
            leases.add_trials(session, job.id, job.fence, trials, PROGRESS, pass_number=number)
    assert job.id == posted["id"]
    return job


def succeed(sessions, job, kept_pass):
    with session_scope(sessions) as session:
        leases.set_state(session, job.id, job.fence, JobState.PACKAGING)
        leases.finish_succeeded(session, job.id, job.fence, {}, [], kept_pass=kept_pass)


def losses(api, job, **asked):
    page = api.get(f"/v1/jobs/{job.id}/trace", params=asked).json()["data"]
    lines = api.get(f"/v1/jobs/{job.id}/trace", params=asked, headers=NDJSON).text.splitlines()
    assert len(lines) == len(page)
    return [trial["loss"] for trial in page]


def test_a_search_is_one_job_in_the_list_and_in_the_queue(api, body, searching):
    listed = api.get("/v1/jobs").json()["data"]
    assert [(one["id"], one["kind"], one["progress"]) for one in listed] == [(searching.id, "pass", PROGRESS)]
    queue = api.get("/v1/queue").json()
    assert [one["id"] for one in queue["data"]] == [searching.id]
    assert (queue["workers_busy"], queue["queued_of_all_teams"], queue["counts"]["running"]) == (1, 0, 1)


def test_the_trace_is_that_of_the_pass_that_runs_and_then_of_the_one_that_is_kept(api, sessions, searching):
    assert losses(api, searching) == [2.0, 2.0]
    assert losses(api, searching, **{"pass": 1}) == [1.0, 1.0, 1.0]
    assert losses(api, searching, **{"pass": 1, "after": 1}) == [1.0]
    assert losses(api, searching, **{"pass": 3}) == []
    succeed(sessions, searching, kept_pass=1)
    assert losses(api, searching) == [1.0, 1.0, 1.0]
    assert losses(api, searching, **{"pass": 2}) == [2.0, 2.0]


@pytest.mark.parametrize("number", ["0", "x", "-1"])
def test_a_pass_that_cannot_be_is_refused(api, searching, number):
    assert api.get(f"/v1/jobs/{searching.id}/trace", params={"pass": number}).status_code == 422


def test_the_answers_fit_their_schema(api, searching):
    document = api.get("/openapi.json").json()
    schema = document["components"]["schemas"]["JobRead"] | {"components": document["components"]}
    job = api.get(f"/v1/jobs/{searching.id}").json()
    assert job["progress"]["pass_number"] == 2
    assert [error.message for error in Draft202012Validator(schema).iter_errors(job)] == []


def test_a_search_that_waits_takes_as_long_as_six_passes(api, stage, body, sessions):
    """Both wait for the one worker, which has ended a pass before."""
    done = stage.succeeded({})
    plain = stage.queued()
    search = api.post("/v1/jobs", json=body | {"config": {"order": "search"}}).json()["id"]
    with session_scope(sessions) as session:
        job = claims.claim_next(session, "worker", 60)
    assert job.id == plain
    queue = api.get("/v1/queue").json()
    took, (running, waiting) = api.get(f"/v1/jobs/{done}").json(), queue["data"]
    assert took["state"] == "succeeded"
    assert (running["id"], waiting["id"]) == (plain, search)
    seconds = waiting["ends_in_seconds"] - running["ends_in_seconds"]
    median = float(queue["eta_method"].split("(axformer ")[1].split(" s")[0])
    assert seconds == pytest.approx(6 * median, abs=0.5)
