"""Whatever goes wrong, the answer is a problem document, and it gives nothing away."""

import re

import psycopg
import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from api.http.problems import MEDIA_TYPE
from api.main import create_app
from api.openapi import Problem
from store.system.processes import free_port


def check(answer, status: int) -> Problem:
    """The problem in an answer."""
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, MEDIA_TYPE)
    problem = Problem.model_validate(answer.json())
    assert problem.status == status
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert re.fullmatch(r"[0-9a-f]{32}", answer.headers["X-Request-ID"])
    return problem


def test_unknown_addresses_and_methods(api):
    assert check(api.get("/v2/jobs"), 404).instance == "/v2/jobs"
    assert check(api.put("/v1/jobs"), 405).code == "method_not_allowed"
    assert "/docs shows what there is" in check(api.get("/redoc"), 404).detail


def test_an_unexpected_error_shows_its_request_id_and_no_more(app, crew, caplog):
    secret = "a value that nobody should see"

    @app.get("/v1/broken")
    def broken() -> None:
        raise RuntimeError(secret)

    with TestClient(app, raise_server_exceptions=False) as client:
        answer = client.get("/v1/broken", headers=crew.headers)
    problem = check(answer, 500)
    assert problem.request_id == answer.headers["X-Request-ID"]
    assert problem.request_id in problem.detail
    assert secret not in answer.text
    assert "Traceback" not in answer.text


def test_a_database_that_is_down_is_a_503_to_be_tried_again(settings, crew):
    dead = settings.model_copy(
        update={"database_url": SecretStr(f"postgresql+psycopg://nobody@127.0.0.1:{free_port()}/test")}
    )
    with TestClient(create_app(dead), raise_server_exceptions=False) as client:
        for method, path in (("GET", "/v1/jobs"), ("GET", "/v1/queue"), ("GET", "/v1/jobs/job_1/events")):
            answer = client.request(method, path, headers=crew.headers)
            assert check(answer, 503).code == "database_unavailable"
            assert answer.headers["Retry-After"] == "5"
        assert client.get("/healthz").status_code == 200


def test_an_outage_of_the_database_is_a_503_and_passes(api, stage, outage):
    job_id = stage.queued()
    with outage():
        assert check(api.get(f"/v1/jobs/{job_id}"), 503).code == "database_unavailable"
        assert check(api.post(f"/v1/jobs/{job_id}/cancel"), 503).status == 503
    assert api.get(f"/v1/jobs/{job_id}").json()["state"] == "queued"


def test_a_full_disk_of_the_database_is_said_and_passes(api, stage, database_url):
    job_id, full = stage.queued(), "RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = 'could not extend file'"
    with psycopg.connect(database_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"CREATE FUNCTION grows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {full}; END $$")
        connection.execute("CREATE TRIGGER grows BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION grows()")
        try:
            problem = check(api.post(f"/v1/jobs/{job_id}/cancel"), 507)
        finally:
            connection.execute("DROP FUNCTION grows CASCADE")
    assert (problem.code, "disk is full; ask the operator" in problem.detail) == ("database_full", True)
    assert api.post(f"/v1/jobs/{job_id}/cancel").status_code == 202


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_above_the_limit_is_refused(api, settings, declared):
    piece, count = b" " * 1000, settings.json_max_bytes // 1000 + 2
    content = piece * count if declared else (piece for _ in range(count))
    answer = api.post("/v1/jobs", content=content, headers={"Content-Type": "application/json"})
    assert str(settings.json_max_bytes) in check(answer, 413).detail


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"name": "caf\xe9"}', "the body is not UTF-8 (byte 13 is 0xe9); send JSON in UTF-8"),
        (b'{"name": ' + b"[" * 20_000, "the body is nested too deeply"),
        (b'{"priority": ' + b"9" * 5000 + b"}", "a number of the body has more than 4,300 digits; send a shorter one"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_with_the_reason(api, body, why):
    answer = api.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
    assert answer.json()["detail"].startswith(why)


def test_a_callers_request_id_comes_back_unless_it_could_forge_a_log_line(api):
    assert api.get("/healthz", headers={"X-Request-ID": "trace-7.a_b"}).headers["X-Request-ID"] == "trace-7.a_b"
    for forged in (b"a b", b"x" * 129, b"caf\xc3\xa9", b""):
        assert re.fullmatch(
            r"[0-9a-f]{32}", api.get("/healthz", headers={"X-Request-ID": forged}).headers["X-Request-ID"]
        )


def test_every_answer_keeps_browsers_tame(api):
    headers = api.get("/v1/jobs").headers
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert (headers["Cache-Control"], headers["X-Frame-Options"]) == ("no-store", "DENY")


def test_numbers_that_no_row_can_have_are_refused(api, stage, make_trial):
    job_id = stage.running([make_trial(0)])
    for path in (f"/v1/jobs/{job_id}/events", f"/v1/jobs/{job_id}/trace", f"/v1/jobs/{job_id}/deliveries", "/v1/audit"):
        assert api.get(path, params={"after": 2**63 - 1}).status_code == 200
        assert "after" in check(api.get(path, params={"after": 2**63}), 422).detail
    check(api.get(f"/v1/jobs/{job_id}/events", headers={"Last-Event-ID": str(2**63)}), 422)
