"""Files of a finished job: whole or in part, the bytes are those that were stored."""

import base64
import hashlib
import random

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as law
from hypothesis import strategies as st

CONTENT = random.Random(5).randbytes(3 * 2**20 + 17)  # several pieces of the storage's reading
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NAME = "model/model.safetensors"


@pytest.fixture
def path(stage):
    """The address of the file ``CONTENT``."""
    done = stage.succeeded({NAME: CONTENT, "empty": b"", 'odd "näme".txt': b"x"})
    return f"/v1/jobs/{done}/artifacts"


def test_files_are_listed_by_name_with_their_digests(api, path):
    listed = api.get(path).json()["data"]
    assert [item["name"] for item in listed] == ["empty", NAME, 'odd "näme".txt']
    assert (listed[1]["sha256"], listed[1]["bytes"]) == (SHA256, len(CONTENT))
    assert [api.get(item["url"]).status_code for item in listed] == [200, 200, 200]


def test_a_file_comes_whole_with_its_headers(api, path):
    answer = api.get(f"{path}/{NAME}")
    assert answer.content == CONTENT
    assert answer.headers["ETag"] == f'"{SHA256}"'
    assert answer.headers["Repr-Digest"] == f"sha-256=:{base64.b64encode(bytes.fromhex(SHA256)).decode()}:"
    assert answer.headers["Content-Length"] == str(len(CONTENT))
    assert answer.headers["Accept-Ranges"] == "bytes"
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="model.safetensors"')
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_downloads_are_in_the_audit_log_and_what_hands_out_nothing_is_not(api, path):
    job = path.split("/")[3]
    api.head(f"{path}/{NAME}")
    api.get(path)
    api.get(f"{path}/{NAME}", headers={"If-None-Match": f'"{SHA256}"'})
    api.get(f"{path}/{NAME}", headers={"Range": f"bytes={len(CONTENT)}-"})
    api.get(f"{path}/nothing")
    assert api.get("/v1/audit").json()["data"] == []
    for part in ("bytes=0-9", "bytes=10-", "bytes=0-1,5-6"):
        assert api.get(f"{path}/{NAME}", headers={"Range": part}).status_code in (200, 206)
    api.get(f"{path}/empty")
    entries = api.get("/v1/audit").json()["data"]
    assert {(entry["action"], entry["object_id"], entry["address"]) for entry in entries} == {
        ("artifact.download", f"{job}/{NAME}", "testclient"),
        ("artifact.download", f"{job}/empty", "testclient"),
    }
    assert sum(entry["times"] for entry in entries) == 4


def test_head_is_get_without_the_body(api, path):
    head, get = api.head(f"{path}/{NAME}"), api.get(f"{path}/{NAME}")
    assert head.content == b""
    own = {"x-request-id", "ratelimit"}  # of each request
    assert {key: value for key, value in head.headers.items() if key not in own} == {
        key: value for key, value in get.headers.items() if key not in own
    }
    assert api.head(f"{path}/{NAME}", headers={"Range": "bytes=0-1"}).status_code == 200


NUMBER = st.integers(0, len(CONTENT) + 10)


@law(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.none() | NUMBER, last=st.none() | NUMBER)
def test_any_range_is_the_slice(api, path, first, last):
    header = f"bytes={'' if first is None else first}-{'' if last is None else last}"
    answer = api.get(f"{path}/{NAME}", headers={"Range": header})
    if first is None:
        expected = CONTENT[-last:] if last else None
    else:
        expected = CONTENT[first:] if last is None else CONTENT[first : last + 1]
    if (first is None and last is None) or (first is not None and last is not None and last < first):
        assert (answer.status_code, answer.content) == (200, CONTENT)
    elif not expected:
        assert (answer.status_code, answer.headers["Content-Range"]) == (416, f"bytes */{len(CONTENT)}")
        assert answer.json()["code"] == "range_not_satisfiable"
    else:
        assert (answer.status_code, answer.content) == (206, expected)
        begin = len(CONTENT) - len(expected) if first is None else first
        end = begin + len(expected) - 1
        assert answer.headers["Content-Range"] == f"bytes {begin}-{end}/{len(CONTENT)}"
        assert answer.headers["Content-Length"] == str(len(expected))


def test_parts_put_together_are_the_whole(api, path):
    step = 700_001
    parts = [
        api.get(f"{path}/{NAME}", headers={"Range": f"bytes={start}-{start + step - 1}", "If-Range": f'"{SHA256}"'})
        for start in range(0, len(CONTENT), step)
    ]
    assert {part.status_code for part in parts} == {206}
    assert b"".join(part.content for part in parts) == CONTENT


def test_a_range_of_another_content_gives_the_whole(api, path):
    for tag in ('"0"', f'W/"{SHA256}"', "Sat, 21 Nov 2026 10:00:00 GMT"):
        answer = api.get(f"{path}/{NAME}", headers={"Range": "bytes=5-", "If-Range": tag})
        assert (answer.status_code, len(answer.content)) == (200, len(CONTENT))


def test_known_content_is_not_sent_again(api, path):
    for tags in (f'"{SHA256}"', f'W/"{SHA256}"', f'"0", "{SHA256}"', "*"):
        for method in ("GET", "HEAD"):
            answer = api.request(method, f"{path}/{NAME}", headers={"If-None-Match": tags, "Range": "bytes=0-1"})
            assert (answer.status_code, answer.content, answer.headers["ETag"]) == (304, b"", f'"{SHA256}"')
    assert api.get(f"{path}/{NAME}", headers={"If-None-Match": '"0"'}).status_code == 200


def test_an_empty_file(api, path):
    assert api.get(f"{path}/empty").content == b""
    assert api.get(f"{path}/empty", headers={"Range": "bytes=0-"}).status_code == 416
    assert api.get(f"{path}/empty", headers={"Range": "bytes=-5"}).status_code == 200


def test_an_odd_name_is_quoted(api, path):
    disposition = api.get(f"{path}/odd%20%22n%C3%A4me%22.txt").headers["Content-Disposition"]
    assert disposition == "attachment; filename=\"odd _n_me_.txt\"; filename*=UTF-8''odd%20%22n%C3%A4me%22.txt"


def test_what_is_not_there_says_why(api, path, stage, settings):
    assert "no file of this name" in api.get(f"{path}/plan.json").json()["detail"]
    for name in ("../../secret", "%2e%2e/%2e%2e/secret", "a%00b", f"{NAME}/"):
        assert api.get(f"{path}/{name}").status_code == 404
    running = stage.running()
    assert "is running; files come when" in api.get(f"/v1/jobs/{running}/artifacts/plan.json").json()["detail"]
    for stored in (settings.storage_dir / "jobs").rglob(SHA256):
        stored.unlink()
    assert api.get(f"{path}/{NAME}").json()["code"] == "content_missing"
