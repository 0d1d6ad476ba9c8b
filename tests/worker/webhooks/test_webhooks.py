"""Messages arrive signed and at least once; whatever a receiver does, it is noted, bounded, and comes to an end."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select, update
from standardwebhooks import Webhook

from axformer.wire.webhooks import DeliveryState
from store.repositories import claims, jobs, leases, steering
from store.repositories.deliveries import (
    Attempt,
    claim_delivery,
    create_secret,
    delete_secret,
    deliveries_after,
    redeliver,
    settle,
    valid_secrets,
)
from store.session import Sessions, session_scope
from store.setting_groups import WebhookSettings
from store.settings import Settings
from store.signing import signing_key
from store.tables.teams import Team
from store.tables.webhooks import Delivery
from tests.loopback import Answer, Loopback
from tests.store.makers import Makers
from worker.webhooks.deliverer import Deliverer, deliver_next
from worker.webhooks.sender import signatures

EVENTS = ["job.created", "job.cancelled", "job.queued"]
SECONDS = 0.5
Tell = Callable[..., str]


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return Settings(
        database_url=database_url,
        var_dir=tmp_path / "var",
        webhook=WebhookSettings(
            plain_http=True,
            private_hosts=("127.0.0.1",),
            timeout_seconds=SECONDS,
            retry_seconds=(100, 200),
            poll_seconds=0.02,
        ),
    )


def changed(settings: Settings, **changes: object) -> Settings:
    """The settings with other ones of webhooks."""
    return settings.model_copy(update={"webhook": settings.webhook.model_copy(update=changes)})


@pytest.fixture
def secret(sessions: Sessions, settings: Settings, team: Team) -> str:
    with session_scope(sessions) as session:
        return create_secret(session, team.id, signing_key(settings), timedelta(hours=1)).text


@pytest.fixture
def tell(sessions: Sessions, team: Team) -> Tell:
    """Makes a job that tells an address of some events, the first of which has happened; gives its id."""

    def make(url: str, **changes: object) -> str:
        webhook = {"url": url, "events": EVENTS}
        with session_scope(sessions) as session:
            return jobs.create_job(session, Makers(team.id).job(webhook=webhook, **changes)).job.id

    return make


class Receiver:
    """Answers with these statuses, the last one for ever."""

    def __init__(self, *statuses: int, headers: dict[str, str] | None = None) -> None:
        self.statuses = list(statuses)
        self.headers = headers or {}

    def __call__(self, method: str, path: str, headers: dict[str, str]) -> Answer:
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return Answer(status, self.headers)


@pytest.fixture
def hanging() -> Iterator[Callable[[bytes], str]]:
    """Servers that say something again and again and never answer; a function from what they say to an address."""
    over, servers = threading.Event(), []

    def drip(server: socket.socket, said: bytes) -> None:
        try:
            connection, _ = server.accept()
            with connection:
                while not over.wait(0.05):
                    connection.sendall(said)
        except OSError:
            return

    def start(said: bytes) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)
        threading.Thread(target=drip, args=[server, said], daemon=True).start()
        return f"http://127.0.0.1:{server.getsockname()[1]}/"

    yield start
    over.set()
    for server in servers:
        server.close()
    for thread in threading.enumerate():
        if thread.name.startswith("send-"):
            thread.join(timeout=30)  # it writes down what became of its message


def messages(sessions: Sessions, job_id: str) -> list[Delivery]:
    with session_scope(sessions) as session:
        return list(deliveries_after(session, job_id, after=0, limit=100).items)


def let_time_pass(sessions: Sessions) -> None:
    with session_scope(sessions) as session:
        session.execute(update(Delivery).values(next_at=func.now(), sending_until=None))


def test_a_message_verifies_with_the_standards_own_library(
    sessions: Sessions, settings: Settings, secret: str, tell: Tell
) -> None:
    with Loopback(Receiver(204)) as receiver:
        job_id = tell(f"{receiver.url}/hook", name="ünïcode", labels={"project": "reviews"})
        assert deliver_next(sessions, settings)
        assert not deliver_next(sessions, settings)
    ((method, path, headers),), (body,) = receiver.requests, receiver.bodies
    assert (method, path, headers["content-type"]) == ("POST", "/hook", "application/json")
    message = Webhook(secret).verify(body, headers)
    assert (message["type"], message["data"]["job_id"], message["data"]["seq"]) == ("job.created", job_id, 1)
    assert (message["data"]["name"], message["data"]["labels"]) == ("ünïcode", {"project": "reviews"})
    (row,) = messages(sessions, job_id)
    assert (row.state, row.attempts, row.last_status, row.last_error) == (DeliveryState.DELIVERED, 1, 204, None)
    assert row.id == headers["webhook-id"]


def test_only_wanted_events_are_told_and_none_of_what_was_rolled_back(sessions: Sessions, tell: Tell) -> None:
    job_id = tell("https://x.example")
    with session_scope(sessions) as session:
        steering.request_pause(session, job_id)
        steering.request_cancel(session, job_id)
    with sessions() as session:
        steering.retry_job(session, job_id)
        session.rollback()
    assert [row.type for row in messages(sessions, job_id)] == ["job.created", "job.cancelled"]


def test_the_example_of_the_standard() -> None:
    secret, at = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", datetime.fromtimestamp(1614265330, UTC)
    made = signatures([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", at, '{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_rotated_secret_signs_beside_the_new_one_until_it_is_over(
    sessions: Sessions, settings: Settings, team: Team, secret: str, tell: Tell
) -> None:
    with session_scope(sessions) as session:
        second = create_secret(session, team.id, signing_key(settings), timedelta(hours=1))
    with Loopback(Receiver(200)) as receiver:
        tell(f"{receiver.url}/")
        deliver_next(sessions, settings)
        for known in (secret, second.text):
            Webhook(known).verify(receiver.bodies[0], receiver.requests[0][2])
        with session_scope(sessions) as session:
            third = create_secret(session, team.id, signing_key(settings), timedelta(0))
            assert [row.id for row in valid_secrets(session, team.id)] == [third.row.id]
        tell(f"{receiver.url}/")
        deliver_next(sessions, settings)
    assert receiver.requests[1][2]["webhook-signature"].count("v1,") == 1
    Webhook(third.text).verify(receiver.bodies[1], receiver.requests[1][2])


def test_however_many_rotate_at_once_two_secrets_are_valid(sessions: Sessions, settings: Settings, team: Team) -> None:
    key = signing_key(settings)

    def rotate(_: int) -> None:
        with session_scope(sessions) as session:
            create_secret(session, team.id, key, timedelta(hours=1))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(rotate, range(16)))
    with session_scope(sessions) as session:
        valid = valid_secrets(session, team.id)
    assert [row.expires_at is None for row in valid] == [True, False]


@pytest.mark.parametrize("status", [500, 404, 301, 302])
def test_a_receiver_that_fails_is_tried_again_later_and_at_last_the_message_is_dead(
    sessions: Sessions, settings: Settings, secret: str, tell: Tell, status: int
) -> None:
    with Loopback(Receiver(status, headers={"Location": "/elsewhere"})) as receiver:
        job_id = tell(f"{receiver.url}/hook")
        for attempt, pause in ((1, 100), (2, 200), (3, None)):
            assert deliver_next(sessions, settings)
            assert not deliver_next(sessions, settings)
            (row,) = messages(sessions, job_id)
            assert (row.attempts, row.last_status) == (attempt, status)
            assert str(status) in row.last_error
            if pause:
                assert row.state is DeliveryState.PENDING
                assert pause <= (row.next_at - row.attempted_at).total_seconds() < pause * 1.25 + 60
                let_time_pass(sessions)
        assert row.state is DeliveryState.DEAD
        let_time_pass(sessions)
        assert not deliver_next(sessions, settings)
        assert receiver.count("/elsewhere") == 0
    assert len({headers["webhook-id"] for _, _, headers in receiver.requests}) == 1


def test_a_dead_message_is_sent_again_by_hand(sessions: Sessions, settings: Settings, secret: str, tell: Tell) -> None:
    strict = changed(settings, retry_seconds=())
    with Loopback(Receiver(500, 200)) as receiver:
        job_id = tell(f"{receiver.url}/hook")
        deliver_next(sessions, strict)
        (row,) = messages(sessions, job_id)
        assert row.state is DeliveryState.DEAD
        with session_scope(sessions) as session:
            assert redeliver(session, job_id, "msg_other") is None
            assert redeliver(session, job_id, row.id) is not None
        assert deliver_next(sessions, strict)
        (row,) = messages(sessions, job_id)
    assert (row.state, row.attempts, row.last_status) == (DeliveryState.DELIVERED, 1, 200)


def test_gone_stops_all_messages_of_the_job_and_no_others(
    sessions: Sessions, settings: Settings, secret: str, tell: Tell
) -> None:
    with Loopback(Receiver(410, 200)) as receiver:
        job_id = tell(f"{receiver.url}/hook")
        with session_scope(sessions) as session:
            steering.request_cancel(session, job_id)
        deliver_next(sessions, settings)
        assert not deliver_next(sessions, settings)
        with session_scope(sessions) as session:
            steering.retry_job(session, job_id)
        assert [row.state for row in messages(sessions, job_id)] == [DeliveryState.DEAD] * 3
        assert "410" in messages(sessions, job_id)[2].last_error
        other = tell(f"{receiver.url}/hook")
        assert deliver_next(sessions, settings)
    assert messages(sessions, other)[0].state is DeliveryState.DELIVERED


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"X"], ids=["silent", "continues", "drips"])
def test_a_receiver_that_hangs_or_drips_is_left_in_time(
    sessions: Sessions, settings: Settings, secret: str, tell: Tell, hanging: Callable[[bytes], str], said: bytes
) -> None:
    job_id = tell(hanging(said))
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(deliver_next, sessions, settings).result(timeout=30)
    (row,) = messages(sessions, job_id)
    assert (row.state, row.last_status) == (DeliveryState.PENDING, None)
    assert "0.5 s" in row.last_error or "cannot be reached" in row.last_error


def test_a_receiver_that_hangs_holds_up_no_other(
    sessions: Sessions, settings: Settings, secret: str, tell: Tell, hanging: Callable[[bytes], str]
) -> None:
    patient = changed(settings, timeout_seconds=60.0, senders=2)
    stuck = hanging(b"")
    for _ in range(5):
        tell(stuck)
    with Loopback(Receiver(200)) as receiver:
        told = [tell(f"{receiver.url}/hook") for _ in range(5)]
        deliverer = Deliverer(sessions, patient)
        deliverer.start()
        deadline = time.monotonic() + 60
        while len(receiver.requests) < 5 and time.monotonic() < deadline:
            time.sleep(0.02)
        deliverer.stop()
        deliverer.join()
        arrived = {json.loads(body)["data"]["job_id"] for body in receiver.bodies}
    assert arrived == set(told)


@pytest.mark.parametrize(
    ("url", "change", "says"),
    [
        ("http://127.0.0.1:9/", {"private_hosts": ()}, "not a public address"),
        ("http://127.0.0.1:9/", {"plain_http": False}, "https"),
        ("http://localhost:9/", {}, "not a public address"),
        ("http://127.0.0.1:9/", {}, "cannot be reached"),
        ("http://no.such.invalid/", {}, "cannot be resolved"),
    ],
)
def test_where_it_may_not_be_or_cannot_be_sent_the_reason_is_told(
    sessions: Sessions, settings: Settings, secret: str, tell: Tell, url: str, change: dict[str, object], says: str
) -> None:
    job_id = tell(url)
    assert deliver_next(sessions, changed(settings, **change))
    (row,) = messages(sessions, job_id)
    assert (row.state, row.last_status) == (DeliveryState.PENDING, None)
    assert says in row.last_error


def test_without_a_secret_or_with_another_key_nothing_is_sent(
    sessions: Sessions, settings: Settings, team: Team, secret: str, tell: Tell
) -> None:
    with Loopback(Receiver(200)) as receiver:
        job_id = tell(f"{receiver.url}/")
        deliver_next(sessions, settings.model_copy(update={"var_dir": settings.var_dir / "other"}))
        assert "made with the key" in messages(sessions, job_id)[0].last_error
        let_time_pass(sessions)
        with session_scope(sessions) as session:
            assert delete_secret(session, team.id, valid_secrets(session, team.id)[0].id)
        deliver_next(sessions, settings)
        assert "no valid secret" in messages(sessions, job_id)[0].last_error
        assert receiver.requests == []


def test_a_message_whose_sender_was_lost_is_anybodys_again_and_dead_after_the_last_attempt(
    sessions: Sessions, tell: Tell
) -> None:
    job_id = tell("https://x.example")

    def take() -> Delivery | None:
        with session_scope(sessions) as session:
            return claim_delivery(session, seconds=60, most=2)

    first = take()
    assert first is not None
    assert take() is None
    let_time_pass(sessions)
    second = take()
    assert second is not None
    with session_scope(sessions) as session:
        settle(session, first, Attempt(200, None), retry_in=1)  # it was not lost after all, and is too late
    (row,) = messages(sessions, job_id)
    assert (row.state, row.attempts) == (DeliveryState.PENDING, 2)
    let_time_pass(sessions)
    assert take() is None
    assert messages(sessions, job_id)[0].state is DeliveryState.DEAD


def test_each_message_is_sent_by_one_however_many_look(
    sessions: Sessions, settings: Settings, secret: str, tell: Tell
) -> None:
    settings = changed(settings, timeout_seconds=30.0)  # a slow answer is sent again, and that is right
    servers = [Loopback(Receiver(200)) for _ in range(4)]
    for number in range(12):
        tell(f"{servers[number % 4].url}/")

    def work(_: int) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            deliver_next(sessions, settings)
            with session_scope(sessions) as session:
                waiting = select(func.count()).select_from(Delivery).where(Delivery.state == DeliveryState.PENDING)
                if session.scalar(waiting) == 0:
                    return

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert [len(server.requests) for server in servers] == [3] * 4
    for server in servers:
        server.__exit__(None, None, None)


def test_a_message_costs_a_worker_nothing_but_a_row(sessions: Sessions, tell: Tell) -> None:
    job_id = tell("https://x.example")
    with session_scope(sessions) as session:
        claimed = claims.claim_next(session, "worker", 60)
        assert claimed is not None
        leases.finish_failed(session, job_id, claimed.fence, {"code": "x", "message": "y", "retryable": False})
    assert [row.attempts for row in messages(sessions, job_id)] == [0]
