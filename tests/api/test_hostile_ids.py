"""Ids, cursors, ranges and keys that are none: each is refused by the one documented status, and reads nothing."""

from datetime import datetime
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from api.errors import InvalidInputError, RangeError
from api.http.answers import choose
from api.http.downloads import parse_range
from api.http.paging import parse_cursor
from tests.statements import said_to

IDS = (
    *("0", "job_", "job_x", "job_" + "0" * 32, "job_" + "g" * 32, "JOB_" + "0" * 32, "upl_" + "0" * 32, "team_1"),
    *(
        "%00",
        "job_%00",
        "%2e%2e",
        "..%2f..%2fetc%2fpasswd",
        "%ff%fe",
        "%ed%a0%80",
        "a" * 2000,
        "'%20OR%201=1--",
        "{job_id}",
    ),
)
SUB_ROUTES = ("", "/trace", "/path", "/path/0/plan", "/events", "/artifacts", "/artifacts/report.json")


@pytest.mark.parametrize("job_id", IDS)
def test_an_id_that_is_none_finds_nothing(api: TestClient, job_id: str) -> None:
    for route in SUB_ROUTES:
        answer = api.get(f"/v1/jobs/{job_id}{route}")
        assert answer.status_code == 404, (route, answer.text)
        assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("name", IDS)
def test_a_file_that_is_none_is_not_found(api: TestClient, body: dict[str, Any], name: str) -> None:
    job_id = api.post("/v1/jobs", json=body).json()["id"]
    answer = api.get(f"/v1/jobs/{job_id}/artifacts/{name}")
    assert (answer.status_code, answer.json()["code"]) == (404, "artifact_not_found")


@pytest.mark.parametrize(
    "after",
    ["-2", "9223372036854775808", "9" * 400, "1e3", "0x1", "1.5", "", "%00", "NaN", "1;DROP TABLE jobs", "\u0661x"],
)
@pytest.mark.parametrize("route", ["/trace", "/events"])
def test_a_number_that_is_none_is_refused(api: TestClient, body: dict[str, Any], route: str, after: str) -> None:
    job_id = api.post("/v1/jobs", json=body).json()["id"]
    answer = api.get(f"/v1/jobs/{job_id}{route}", params={"after": after})
    assert answer.status_code == 422, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("route", ["/trace", "/events"])
def test_the_largest_number_is_behind_everything(api: TestClient, body: dict[str, Any], route: str) -> None:
    job_id = api.post("/v1/jobs", json=body).json()["id"]
    answer = api.get(f"/v1/jobs/{job_id}{route}", params={"after": 2**63 - 1})
    assert (answer.status_code, answer.json()["data"]) == (200, [])


@pytest.mark.parametrize(
    "after", ["", "job_", "job_" + "0" * 32 + "@", "job_" + "0" * 32 + "@" + "9" * 30, "\x00", "@1", "ü"]
)
def test_a_cursor_that_is_none_is_refused(api: TestClient, after: str) -> None:
    with said_to(api.app.state.resources.engine) as said:
        answer = api.get("/v1/jobs", params={"after": after})
    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, "after")
    assert [statement for statement in said if "FROM jobs" in statement] == []


@pytest.mark.parametrize("key", ["", "a" * 256, "tab\there", "\x7f", "\xff", "a\x00b"])
def test_an_idempotency_key_that_is_none_is_refused(api: TestClient, body: dict[str, Any], key: str) -> None:
    answer = api.post("/v1/jobs", json=body, headers={"Idempotency-Key": key.encode("latin-1")})  # type: ignore[dict-item]
    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, "idempotency-key")
    assert api.get("/v1/jobs").json()["data"] == []


texts = st.text(max_size=40)
parts = st.lists(st.sampled_from(["bytes=", "-", ",", "0", "9" * 30, " ", "bytes", "x", "\u0663", "\t"]), max_size=6)


@settings(max_examples=200, deadline=None)
@given(header=texts | parts.map("".join), size=st.integers(0, 2**62))
@example(header="bytes=" + "9" * 5000 + "-", size=10)
def test_any_range_is_a_part_of_the_file_or_refused(header: str, size: int) -> None:
    try:
        found = parse_range(header, size)
    except RangeError:
        return
    assert found is None or 0 <= found.start < found.stop <= size


@settings(max_examples=200, deadline=None)
@given(after=texts | st.from_regex(r"job_[0-9a-f]{32}@[0-9]{1,20}", fullmatch=True))
def test_any_cursor_is_one_or_refused(after: str) -> None:
    try:
        job_id, made = parse_cursor(after, "job")
    except InvalidInputError:
        return
    assert job_id.startswith("job_")
    assert made is None or isinstance(made, datetime)


@settings(max_examples=200, deadline=None)
@given(accept=st.none() | texts | st.from_regex(r"([a-z*]+/[a-z*]+(;q=[0-9.]{0,30})?,?){1,4}", fullmatch=True))
def test_any_wish_for_a_form_is_granted_or_refused(accept: str | None) -> None:
    from api.errors import ApiError

    try:
        assert choose(accept, ("application/json", "text/csv")) in ("application/json", "text/csv")
    except ApiError:
        return


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(key=st.text(st.characters(max_codepoint=255), min_size=1, max_size=300))
def test_any_idempotency_key_is_taken_or_refused(api: TestClient, body: dict[str, Any], key: str) -> None:
    answer = api.post("/v1/jobs", json=body, headers={"Idempotency-Key": key.encode("latin-1")})  # type: ignore[dict-item]
    sent = key.strip(" \t")  # which is not a part of a header's value
    is_one = 1 <= len(sent) <= 255 and all(" " <= letter <= "~" for letter in sent)
    assert answer.status_code == (202 if is_one else 422), answer.text
