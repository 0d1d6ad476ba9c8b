"""A search of orders as its team sees it: one job that holds its passes."""

import pytest
from jsonschema import Draft202012Validator

from axformer.methods.axformer.orders import SEARCHED_ORDERS
from store.repositories import claims, leases
from store.session import session_scope
from store.states import JobState


@pytest.fixture
def posted(api, body):
    """The answer to a search that was just posted."""
    answer = api.post("/v1/jobs", json=body | {"config": {"order": "search"}})
    assert answer.status_code == 202
    return answer.json()


def claimed(sessions):
    with session_scope(sessions) as session:
        return claims.claim_next(session, "worker", 60)


def progressed(sessions, job, make_trial, **changes):
    progress = {"done": 10, "known": 40, "seconds": 5.0, "seconds_left": 15.0, "base_loss": 0.5, "min_loss": 0.4}
    progress["first_look"] = "40 rows"
    progress |= {"operations": 900, "estimated_speedup": 1.1}
    with session_scope(sessions) as session:
        for state in (JobState.VALIDATING, JobState.RUNNING):
            leases.set_state(session, job.id, job.fence, state)
        leases.add_trials(
            session, job.id, job.fence, [make_trial(0)], progress | {"known_at_first": 20, "dimensions": {}} | changes
        )


def failed(sessions, job):
    error = {"code": "invalid_data", "message": "no rows", "param": "validation", "retryable": False}
    with session_scope(sessions) as session:
        leases.finish_failed(session, job.id, job.fence, error)


def test_a_search_shows_a_pass_for_each_order(api, posted):
    assert [one["order"] for one in posted["passes"]] == list(SEARCHED_ORDERS)
    assert {one["state"] for one in posted["passes"]} == {"queued"}
    assert (posted["parent"], posted["progress"], posted["config"]["order"]) == (None, None, "search")
    assert api.get(f"/v1/jobs/{posted['id']}").json() == posted
    for one in posted["passes"]:
        below = api.get(one["url"]).json()
        assert (below["id"], below["parent"], below["passes"]) == (one["id"], posted["id"], None)
        assert below["config"] == posted["config"] | {"order": one["order"]}


def test_passes_are_listed_with_their_search_alone(api, posted, stage):
    plain = stage.queued()
    assert [job["id"] for job in api.get("/v1/jobs").json()["data"]] == [plain, posted["id"]]
    shown = [api.get(f"/v1/jobs/{id}").json() | {"queue": None} for id in (plain, posted["id"])]
    assert api.get("/v1/jobs").json()["data"] == shown
    assert api.get(f"/v1/jobs/{plain}").json()["passes"] is None


def test_progress_is_that_of_all_passes(api, posted, sessions, make_trial):
    for done, min_loss, left in ((10, 0.4, 800), (30, 0.3, 900)):
        progressed(sessions, claimed(sessions), make_trial, done=done, min_loss=min_loss, operations=left)
    job = api.get(f"/v1/jobs/{posted['id']}").json()
    assert (job["state"], job["started_at"] is not None) == ("running", True)
    assert job["progress"] == {
        "done": 40,
        "known": 2 * 40 + 4 * 20,
        "seconds": 10.0,
        "seconds_left": 120 * 10.0 / 40,
        "base_loss": 0.5,
        "first_look": "40 rows",
        "min_loss": 0.3,
        "operations": 900,
        "estimated_speedup": 1.1,
    }
    assert sorted(one["progress"]["done"] for one in job["passes"] if one["progress"]) == [10, 30]
    assert sorted(one["state"] for one in job["passes"]) == ["queued"] * 4 + ["running"] * 2


def test_the_queue_holds_the_passes(api, posted, sessions):
    one = claimed(sessions)
    queue = api.get("/v1/queue").json()
    assert {item["id"] for item in queue["data"]} == {below["id"] for below in posted["passes"]}
    assert queue["data"][0]["id"] == one.id
    assert [item["position"] for item in queue["data"][1:]] == [1, 2, 3, 4, 5]
    assert (queue["workers_busy"], queue["queued_of_all_teams"]) == (1, 5)
    assert (queue["counts"]["running"], queue["counts"]["queued"]) == (1, 0)


def test_a_search_is_cancelled_as_a_whole(api, posted, sessions):
    one = claimed(sessions)
    cancelled = api.post(posted["links"]["cancel"]).json()
    assert cancelled["state"] == "cancelling"
    assert sorted(below["state"] for below in cancelled["passes"]) == ["cancelled"] * 5 + ["cancelling"]
    with session_scope(sessions) as session:
        leases.finish_cancelled(session, one.id, one.fence)
    assert claimed(sessions) is None
    assert api.get(posted["links"]["self"]).json()["state"] == "cancelled"


@pytest.mark.parametrize("act", ["cancel", "retry", "delete"])
def test_a_pass_is_not_changed_by_itself(api, posted, act):
    path = posted["passes"][0]["url"]
    answer = api.delete(path) if act == "delete" else api.post(f"{path}/{act}")
    assert (answer.status_code, answer.json()["code"]) == (409, "part_of_job")
    assert posted["id"] in answer.json()["detail"]
    assert api.get(path).json()["state"] == "queued"


def test_a_failed_pass_is_the_error_of_the_search(api, posted, sessions):
    one = claimed(sessions)
    failed(sessions, one)
    assert claimed(sessions) is None
    job = api.get(posted["links"]["self"]).json()
    assert (job["state"], job["error"]["code"], job["error"]["param"]) == ("failed", "invalid_data", "validation")
    assert one.id in job["error"]["message"]
    assert sorted(below["state"] for below in job["passes"]) == ["cancelled"] * 5 + ["failed"]


@pytest.mark.parametrize("act", ["retry", "delete"])
def test_the_passes_go_with_a_search(api, posted, act):
    api.post(posted["links"]["cancel"])
    answer = api.delete(posted["links"]["self"]) if act == "delete" else api.post(posted["links"]["retry"])
    assert answer.is_success
    for one in posted["passes"]:
        assert api.get(one["url"]).status_code == 404
    if act == "retry":
        assert len(answer.json()["passes"]) == 6
        assert answer.json()["state"] == "queued"


def test_a_pass_has_no_files_of_its_own(api, posted):
    one = posted["passes"][0]
    assert api.get(f"{one['url']}/artifacts").json() == {"data": []}
    detail = api.get(f"{one['url']}/artifacts/plan.json").json()["detail"]
    assert f"is a pass of {posted['id']}, which has the files of the best pass" in detail


def test_an_upload_is_needed_by_the_search_alone(api, body):
    upload = api.post("/v1/uploads", files={"file": ("dev.jsonl", b"{}")}).json()
    config = {"validation": {"uri": upload["uri"]}, "config": {"order": "search"}}
    posted = api.post("/v1/jobs", json=body | config).json()
    answer = api.delete(f"/v1/uploads/{upload['id']}")
    assert answer.status_code == 409
    assert posted["id"] in answer.json()["detail"]
    assert not [one["id"] for one in posted["passes"] if one["id"] in answer.json()["detail"]]


def test_the_answers_fit_their_schema(api, posted, sessions, make_trial):
    progressed(sessions, claimed(sessions), make_trial)
    document = api.get("/openapi.json").json()
    schema = document["components"]["schemas"]["JobRead"] | {"components": document["components"]}
    job = api.get(posted["links"]["self"]).json()
    assert job["progress"]["done"] == 10
    assert [error.message for error in Draft202012Validator(schema).iter_errors(job)] == []
