"""One sender can neither take all places for uploads, nor hold connections, nor make the others wait behind its requests."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx2
import pytest
from sqlalchemy import text

from api import server
from api.errors import LimitReachedError, UnavailableError
from api.places import Places
from store.session import session_scope
from tests.waiting import wait_until

HEAD = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
SLOW = "less than 1000 bytes a second"


@pytest.fixture
def settings(settings, request):
    changed = {"uploads_at_once": 4, "upload_slowest": 1000, "upload_pace_seconds": 0.4}
    line = {"sessions_at_once": 1, "requests_waiting": 4, "shed_seconds": 60.0} | getattr(request, "param", {})
    return settings.model_copy(update=changed | line)


def dripping(live: str, key: str, stop: threading.Event, pause: float) -> bytes:
    """The answer to an upload of a byte from time to time."""
    address = httpx2.URL(live)
    lines = ["POST /v1/uploads HTTP/1.1", "Host: x", f"Authorization: Bearer {key}", "Content-Length: 500000"]
    lines += ["Content-Type: multipart/form-data; boundary=b", "", ""]
    with socket.create_connection((address.host, address.port), timeout=pause) as connection:
        connection.sendall("\r\n".join(lines).encode() + HEAD)
        while not stop.is_set():
            try:
                said = connection.recv(4096)
                connection.settimeout(60.0)
                while said and b"}" not in said:  # the problem may come after the head
                    said += connection.recv(4096)
                return said
            except TimeoutError:
                connection.sendall(b"x")
    return b""


@pytest.mark.parametrize("pause", [0.05, 60.0], ids=["drips", "silent"])
def test_slow_uploads_end_with_a_reason_and_never_take_the_places_of_others(live, crew, rivals, pause):
    stop = threading.Event()
    with ThreadPoolExecutor(4) as pool:
        slow = [pool.submit(dripping, live, crew.key, stop, pause) for _ in range(4)]
        answer = httpx2.post(f"{live}/v1/uploads", headers=rivals.headers, files={"file": ("a.csv", b"x")}, timeout=60)
        assert answer.status_code == 201
        said = [one.result() for one in slow]
        stop.set()
    assert sorted({one.split(b" ")[1] for one in said}) == [b"408", b"429"]
    assert all((SLOW if b" 408 " in one else "may have 1; wait until one has ended").encode() in one for one in said)


def test_an_upload_that_the_service_itself_takes_long_for_is_not_slow(live, crew, app, monkeypatch):
    put = type(app.state.resources.storage).put

    def slow(self, folder, chunks, **named):
        def slowed():
            for chunk in chunks:
                time.sleep(0.5)
                yield chunk

        return put(self, folder, slowed(), **named)

    monkeypatch.setattr(type(app.state.resources.storage), "put", slow)
    answer = httpx2.post(f"{live}/v1/uploads", headers=crew.headers, files={"file": ("a.csv", b"x" * 99)}, timeout=30)
    assert answer.status_code == 201


@pytest.mark.parametrize("begin", [b"", b"GET /healthz HTTP/1.1\r\nX-Never: en"], ids=["nothing", "half a head"])
def test_a_head_that_does_not_come_is_not_waited_for(live, monkeypatch, begin):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.3)
    address = httpx2.URL(live)
    with socket.create_connection((address.host, address.port), timeout=20) as connection:
        connection.sendall(begin)
        assert b" 408 Request Timeout" in connection.recv(4096)
        assert connection.recv(4096) == b""


def test_a_connection_may_rest_between_two_requests(live, monkeypatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 1.0)
    with httpx2.Client(base_url=live) as one:
        for pause in (1.5, 0.0):
            assert one.get("/healthz").status_code == 200
            time.sleep(pause)


def test_requests_beyond_the_line_are_refused_at_once_and_the_rest_is_answered(live, crew, rivals, sessions):
    with (
        httpx2.Client(base_url=live, headers=crew.headers, timeout=60) as one,
        ThreadPoolExecutor(12) as pool,
        ExitStack() as locked,
    ):
        assert one.get("/v1/jobs").status_code == 200
        locked.enter_context(session_scope(sessions)).execute(text("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE"))
        mine = [pool.submit(one.get, "/v1/jobs") for _ in range(10)]
        taken = 1 + 4 // 2  # one works and half of the line is one sender's
        wait_until(lambda: len(done_of(mine)) >= 10 - taken)
        time.sleep(0.3)
        refused = done_of(mine)
        assert len(refused) == 10 - taken
        assert {answer.status_code for answer in refused} == {503}
        assert {answer.json()["code"] for answer in refused} == {"overloaded"}
        assert all("Retry-After" in answer.headers for answer in refused)
        assert httpx2.get(f"{live}/healthz").status_code == 200
        theirs = pool.submit(httpx2.get, f"{live}/v1/jobs", headers=rivals.headers, timeout=60)
        time.sleep(0.3)
        assert not theirs.done(), "there is room in the line for others"
        locked.close()
        assert [future.result().status_code for future in mine].count(200) == 3
        assert theirs.result().status_code == 200


@pytest.mark.parametrize("settings", [{"requests_waiting": 100, "shed_seconds": 1.0}], indirect=True)
def test_bodies_that_do_not_come_take_no_place_in_the_line(live, crew, rivals):
    address = httpx2.URL(live)
    fields = {"Host": "here", "Content-Type": "application/json", "Content-Length": "99", **crew.headers}
    lines = ["POST /v1/jobs HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    head = "\r\n".join([*lines, "", "{"]).encode()
    with ExitStack() as opened:
        for _ in range(12):
            opened.enter_context(socket.create_connection((address.host, address.port), timeout=20)).sendall(head)
        time.sleep(1.2)
        assert httpx2.get(f"{live}/v1/jobs", headers=rivals.headers).status_code == 200


def done_of(asked):
    """The answers that have come."""
    return [one.result() for one in asked if one.done()]


@pytest.mark.parametrize("settings", [{"requests_waiting": 100, "shed_seconds": 0.3}], indirect=True)
def test_where_the_first_waits_too_long_no_more_are_taken(live, crew, sessions):
    with ThreadPoolExecutor(50) as pool, ExitStack() as locked:
        locked.enter_context(session_scope(sessions)).execute(text("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE"))
        asked = []

        def is_one_shed():
            asked.append(pool.submit(httpx2.get, f"{live}/v1/jobs", headers=crew.headers, timeout=60))
            time.sleep(0.2)
            return done_of(asked)

        wait_until(is_one_shed)
        assert {answer.status_code for answer in done_of(asked)} == {503}
        assert len(asked) > 2, "the first waits for a while before others are shed"
        locked.close()
        assert {one.result().status_code for one in asked} == {200, 503}
        assert httpx2.get(f"{live}/v1/jobs", headers=crew.headers).status_code == 200


def test_places_are_shared_and_given_back():
    places = Places("looks", 2, 1)
    with places.taken("a"):
        with pytest.raises(LimitReachedError, match="your team has 1 looks under way and may have 1"):
            places.taken("a").__enter__()
        with places.taken("b"), pytest.raises(UnavailableError, match="2 looks are under way"):
            places.taken("c").__enter__()
        with places.taken("c"):
            pass
    with places.taken("a"):
        pass


def test_who_waits_for_a_place_gets_it_and_few_wait():
    places = Places("looks", 1, 1, wait_seconds=20.0)

    def take() -> str:
        try:
            with places.taken("a"):
                return "had"
        except UnavailableError:
            return "refused"

    with ThreadPoolExecutor(8) as pool:
        with places.taken("b"):
            asked = [pool.submit(take) for _ in range(8)]
            wait_until(lambda: len(done_of(asked)) >= 4)
            time.sleep(0.3)
            assert done_of(asked) == ["refused"] * 4
        assert sorted(one.result() for one in asked) == ["had"] * 4 + ["refused"] * 4
