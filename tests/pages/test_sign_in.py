"""Signing in and out: what is taken, what is refused, and what the cookie gives away."""

import time

import pytest
from cryptography.fernet import Fernet
from starlette.testclient import TestClient

from api.main import create_app
from api.pages.session import SESSION_COOKIE, Seal
from store.repositories.keys import revoke_key
from store.session import session_scope
from store.signing import SigningKey

FOREIGN = "https://evil.example"


def test_a_key_opens_the_board_and_sign_out_closes_it(visitor, crew):
    assert visitor.sign_in(crew.key).headers["location"] == "/"
    board = visitor.get("/")
    assert board.status_code == 200
    assert "crew" in board.text
    assert visitor.post("/sign-out", visitor.token("/")).headers["location"] == "/sign-in"
    assert visitor.get("/").url.path == "/sign-in"


def test_a_cookie_that_was_copied_opens_nothing_after_signing_out_on_whatever_process(member, crew, settings):
    cookie = member.client.cookies[SESSION_COOKIE]
    token = member.token("/")
    with TestClient(create_app(settings)) as thief:
        copied = {"Cookie": f"{SESSION_COOKIE}={cookie}"}
        assert thief.get("/", headers=copied).status_code == 200
        member.post("/sign-out", token)
        for same in (cookie, f"!{cookie}", cookie.rstrip("=")):  # which some decoders read alike
            stolen = {"Cookie": f"{SESSION_COOKIE}={same}"}
            assert thief.get("/", headers=stolen, follow_redirects=False).status_code == 401
            assert thief.get("/board/live", headers=stolen, follow_redirects=False).status_code == 401
    assert member.sign_in(crew.key).status_code == 303  # the key itself is as good as before
    assert member.get("/").url.path == "/"


def test_signing_in_and_out_is_in_the_audit_log_with_key_and_address(visitor, crew):
    visitor.sign_in(crew.key)
    visitor.post("/sign-out", visitor.token("/"))
    visitor.sign_in(f"{crew.key[:-4]}0000")
    wrong, ended, begun = visitor.client.get("/v1/audit", headers=crew.headers).json()["data"]
    assert [one["action"] for one in (begun, ended, wrong)] == ["session.begin", "session.end", "key.refused"]
    assert begun["object_id"] == ended["object_id"]
    assert {(one["key_id"], one["address"]) for one in (begun, ended, wrong)} == {
        (crew.key.split("_")[1], "testclient")
    }


@pytest.mark.parametrize("key", ["", "axk_", "axk_" + "0" * 16 + "_" + "0" * 64, "<script>"])
def test_a_wrong_key_is_refused_with_the_form(visitor, key):
    answer = visitor.sign_in(key)
    assert answer.status_code == 401
    assert "The key is unknown" in answer.text
    assert SESSION_COOKIE not in visitor.client.cookies


def test_the_cookie_is_for_the_server_alone_and_holds_no_key_in_clear(visitor, crew):
    cookie = visitor.sign_in(crew.key).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Max-Age=28800" in cookie
    assert crew.key not in cookie
    assert crew.key.rpartition("_")[2] not in cookie
    assert "Secure" not in cookie  # the test speaks http


def test_over_https_the_cookie_is_sent_over_https_only(app, crew):
    with TestClient(app, base_url="https://testserver") as client:
        text = client.get("/sign-in").text
        token = text.partition('name="form_token" value="')[2].partition('"')[0]
        answer = client.post(
            "/sign-in",
            data={"form_token": token, "key": crew.key},
            headers={"Origin": "https://testserver"},
            follow_redirects=False,
        )
    assert "Secure" in answer.headers["set-cookie"]


def test_a_revoked_key_is_signed_out_at_once_and_led_back(member, crew, sessions):
    with session_scope(sessions) as session:
        revoke_key(session, crew.key.split("_")[1])
    answer = member.get("/?state=queued")
    assert answer.url.path == "/sign-in"
    assert 'name="next" value="/?state=queued"' in answer.text


def test_a_program_that_is_not_signed_in_gets_a_problem(visitor):
    answer = visitor.client.get("/board/live", headers={"Accept": "text/event-stream"}, follow_redirects=False)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("wanted", "led"),
    [
        ("/jobs/job_1?x=1", "/jobs/job_1?x=1"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/a\nb", "/"),
    ],
)
def test_signing_in_leads_back_to_own_pages_only(visitor, crew, wanted, led):
    assert visitor.sign_in(crew.key, next=wanted).headers["location"] == led


@pytest.mark.parametrize("origin", [FOREIGN, None, "null", "http://testserver.evil.example"])
def test_a_form_from_elsewhere_is_refused(visitor, crew, origin):
    answer = visitor.post("/sign-in", visitor.token("/sign-in"), origin=origin, key=crew.key)
    assert answer.status_code == 403
    assert SESSION_COOKIE not in visitor.client.cookies


@pytest.mark.parametrize("token", ["", "0" * 64, "é"])
def test_a_form_without_its_token_is_refused(member, token):
    answer = member.post("/sign-out", token)
    assert answer.status_code == 403
    assert "too old or not from this service" in answer.text
    assert member.get("/").url.path == "/"


def test_the_token_of_one_visitor_is_not_taken_from_another(member, rival):
    assert rival.post("/sign-out", member.token("/")).status_code == 403


def test_seals_of_another_service_or_of_long_ago_open_nothing(monkeypatch):
    seal = Seal((old := SigningKey(b"a" * 32),), 60)
    sealed = seal.session("one", "axk_1")
    assert seal.opened(sealed) == ("one", "axk_1")
    assert Seal((SigningKey(b"b" * 32),), 60).opened(sealed) is None
    rotated = Seal((SigningKey(b"b" * 32), old), 60)
    assert rotated.opened(sealed) == ("one", "axk_1")
    assert seal.opened(rotated.session("two", "axk_1")) is None
    assert seal.opened(Fernet(Fernet.generate_key()).encrypt(b"axk_1").decode()) is None
    assert seal.opened("nonsense") is None
    later = time.time() + 61
    monkeypatch.setattr(time, "time", lambda: later)
    assert seal.opened(sealed) is None


def test_an_app_reads_no_key_before_the_first_page(settings):
    create_app(settings)
    assert not (settings.var_dir / "secret.key").exists()
