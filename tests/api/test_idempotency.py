"""The same request under the same key, however often, whenever and by how many: one job, and the answer of the first."""

from concurrent.futures import ThreadPoolExecutor

from hypothesis import HealthCheck, given
from hypothesis import settings as law
from hypothesis import strategies as st
from sqlalchemy import delete, func, select

from store.session import session_scope
from store.tables.jobs import Job

JOB = "/v1/jobs/{}"


def post(api, body, key):
    return api.post("/v1/jobs", json=body, headers={"Idempotency-Key": key})


REQUESTS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["one", "two"])), min_size=2, max_size=9)
"""No more than one of them waits for a session, so none is shed on a slow machine."""


@law(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests=REQUESTS)
def test_however_many_come_at_once_each_key_has_one_job_and_one_answer(api, body, sessions, requests):
    with session_scope(sessions) as session:
        session.execute(delete(Job))
    with ThreadPoolExecutor(len(requests)) as threads:
        answers = list(threads.map(lambda one: post(api, body | {"name": one[1]}, one[0]), requests))
    with session_scope(sessions) as session:
        made = {job.idempotency_key: job for job in session.scalars(select(Job))}
    assert set(made) == {key for key, _ in requests}
    for (key, name), answer in zip(requests, answers, strict=True):
        if name == made[key].name:
            assert (answer.status_code, answer.json()["id"]) == (202, made[key].id)
        else:
            assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")
    for key in made:
        taken = [a for (k, _), a in zip(requests, answers, strict=True) if k == key and a.status_code == 202]
        assert len({answer.content for answer in taken}) == 1
        assert sum("Idempotent-Replayed" not in answer.headers for answer in taken) == 1


def test_the_answer_is_that_of_the_first_time_whatever_has_become_of_the_job(api, body):
    first = post(api, body, "once")
    api.post(JOB.format(first.json()["id"]) + "/cancel")
    again = post(api, body, "once")
    assert (again.status_code, again.content) == (202, first.content)
    assert again.headers["Location"] == first.headers["Location"]
    assert again.headers["Content-Type"] == first.headers["Content-Type"]


def test_a_request_that_says_a_default_is_the_same_request(api, body):
    first = post(api, body, "once")
    assert post(api, body | {"priority": 0, "labels": {}, "webhook": None}, "once").content == first.content


def test_the_key_of_a_deleted_job_is_free_again(api, body, sessions):
    first = post(api, body, "once").json()
    api.post(JOB.format(first["id"]) + "/cancel")
    assert api.delete(JOB.format(first["id"])).status_code == 204
    second = post(api, body, "once")
    assert "Idempotent-Replayed" not in second.headers
    assert second.json()["id"] != first["id"]


def test_posts_and_deletes_at_once_never_fail(api, body):
    def churn(number):
        answer = post(api, body | {"priority": 0}, "shared")
        job = answer.json()["id"]
        api.post(JOB.format(job) + "/cancel")
        api.delete(JOB.format(job))
        return answer.status_code

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(churn, range(64))) == {202}


def test_a_refused_request_leaves_its_key_free(api, body):
    refused = post(api, body | {"validation": {"uri": "upload:upl_" + "0" * 32}}, "once")
    assert refused.status_code == 422
    assert post(api, body, "once").status_code == 202


def test_a_request_that_met_an_outage_is_sent_again_until_it_is_taken_and_makes_one_job(api, body, sessions, outage):
    statuses = []
    with ThreadPoolExecutor(4) as threads:
        for _ in range(3):
            storm = [threads.submit(post, api, body, "storm") for _ in range(4)]
            with outage():
                statuses += [answer.result().status_code for answer in storm]
    statuses.append(post(api, body, "storm").status_code)
    assert set(statuses) <= {202, 503}
    assert statuses[-1] == 202
    with session_scope(sessions) as session:
        assert session.scalar(select(func.count()).select_from(Job)) == 1
