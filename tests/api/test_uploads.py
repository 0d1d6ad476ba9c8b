"""Uploads: what is sent is stored, once, within the limit, for one team."""

import hashlib
import random
import socket

import httpx2
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as law
from hypothesis import strategies as st

from store.settings import Settings
from tests.waiting import wait_until

LIMIT = 2**20


def send(api, content: bytes, name: str = "dev.csv", **more):
    return api.post("/v1/uploads", files={"file": (name, content)}, **more)


def stored_files(settings: Settings) -> list[bytes]:
    return [path.read_bytes() for path in stored_paths(settings)]


def stored_paths(settings):
    """The files there are; while an upload is under way they may be gone before they are read."""
    return [path for path in settings.storage_dir.rglob("*") if path.is_file()]


@law(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=300) | st.integers(0, LIMIT).map(random.Random(1).randbytes))
def test_what_is_sent_is_stored(api, settings, content):
    answer = send(api, content)
    upload = answer.json()
    assert answer.status_code == 201
    assert (upload["bytes"], upload["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    assert (settings.storage_dir / "uploads" / upload["id"] / upload["sha256"]).read_bytes() == content
    assert api.get(answer.headers["Location"]).json() == upload


def test_an_upload_is_named_in_a_job_of_its_team_alone(api, body, rivals):
    upload = send(api, b"text,label\n", "dev.csv").json()
    assert (upload["uri"], upload["filename"]) == (f"upload:{upload['id']}", "dev.csv")
    body["validation"] = {"uri": upload["uri"]}
    assert api.post("/v1/jobs", json=body).json()["validation"]["uri"] == upload["uri"]
    theirs = api.post("/v1/jobs", json=body, headers=rivals.headers)
    assert (theirs.status_code, theirs.json()["errors"][0]["pointer"]) == (422, "#/validation/uri")
    for method in ("GET", "DELETE"):
        assert api.request(method, f"/v1/uploads/{upload['id']}", headers=rivals.headers).status_code == 404


@pytest.mark.parametrize("excess", [1, 100_000])
def test_a_byte_too_many_is_refused_and_leaves_nothing(api, settings, excess):
    assert send(api, b"x" * LIMIT).status_code == 201
    before = len(stored_files(settings))
    answer = send(api, b"x" * (LIMIT + excess))
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert str(LIMIT) in answer.json()["detail"]
    assert len(stored_files(settings)) == before


def test_a_body_without_declared_length_is_counted(api, settings):
    def endless():
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        for _ in range(100):
            yield b"x" * 2**16

    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    assert api.post("/v1/uploads", content=endless(), headers=headers).status_code == 413
    assert stored_files(settings) == []


def test_a_broken_form_leaves_nothing(api, settings, subtests):
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
    forms = [
        (head + b"content", "multipart/form-data; boundary=b", 400),
        (head + b"content\r\n--b\r\n" + head[5:] + b"more\r\n--b--\r\n", "multipart/form-data; boundary=b", 422),
        (b"content", "text/csv", 415),
        (head.replace(b'"file"', b'"data"') + b"x\r\n--b--\r\n", "multipart/form-data; boundary=b", 422),
        (b"--b--\r\n", "multipart/form-data; boundary=b", 422),
    ]
    for content, content_type, status in forms:
        with subtests.test(content=content):
            answer = api.post("/v1/uploads", content=content, headers={"Content-Type": content_type})
            assert (answer.status_code, answer.json()["status"]) == (status, status)
    assert stored_files(settings) == []


def test_a_sender_that_goes_away_leaves_nothing(live, crew, settings, caplog):
    address = httpx2.URL(live)
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
    lines = ["POST /v1/uploads HTTP/1.1", "Host: x", f"Authorization: Bearer {crew.key}", "Content-Length: 500000"]
    lines += ["Content-Type: multipart/form-data; boundary=b", "", ""]
    with socket.create_connection((address.host, address.port)) as connection:
        connection.sendall("\r\n".join(lines).encode() + head + b"x" * 100_000)
        wait_until(lambda: stored_paths(settings))
    wait_until(lambda: not stored_paths(settings))
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_nobody_sends_without_a_key(client):
    assert send(client, b"x").status_code == 401


def test_a_deleted_upload_is_gone_with_its_content(api, settings):
    upload = send(api, b"x").json()
    answer = api.delete(f"/v1/uploads/{upload['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert api.get(f"/v1/uploads/{upload['id']}").status_code == 404
    assert stored_files(settings) == []


def test_an_upload_that_a_job_needs_stays(api, body):
    upload = send(api, b"x").json()
    job = api.post("/v1/jobs", json=body | {"test": {"uri": upload["uri"]}}).json()
    answer = api.delete(f"/v1/uploads/{upload['id']}")
    assert (answer.status_code, answer.json()["code"]) == (409, "upload_in_use")
    assert job["id"] in answer.json()["detail"]
    api.post(f"/v1/jobs/{job['id']}/cancel")
    assert api.delete(f"/v1/uploads/{upload['id']}").status_code == 204


def test_a_replay_is_answered_though_its_upload_is_gone(api, body):
    upload, key = send(api, b"x").json(), {"Idempotency-Key": "k"}
    body["validation"] = {"uri": upload["uri"]}
    job = api.post("/v1/jobs", json=body, headers=key).json()
    api.post(f"/v1/jobs/{job['id']}/cancel")
    api.delete(f"/v1/uploads/{upload['id']}")
    assert api.post("/v1/jobs", json=body, headers=key).json()["id"] == job["id"]
    assert api.post("/v1/jobs", json=body).status_code == 422
