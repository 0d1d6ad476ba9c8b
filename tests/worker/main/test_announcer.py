import time
from collections.abc import Callable

import pytest
from kombu.exceptions import OperationalError
from sqlalchemy import text, update

from axformer.wire.devices import Device
from store.repositories.workers import living_workers, note_worker
from store.session import Sessions, session_scope
from store.tables.jobs import Job
from store.tables.workers import Worker
from tests.waiting import wait_until
from tests.worker.conftest import Post
from worker.main.announcer import Announcer, announce


class Sent:
    """Counts messages, as a broker would take them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def no_broker() -> None:
    raise OperationalError("the broker is away")


def test_waiting_jobs_are_announced_by_one_message(sessions: Sessions, post: Post) -> None:
    post()
    post()
    sent = Sent()
    assert announce(sessions, sent)
    assert sent.count == 1


def test_a_job_whose_message_was_lost_is_announced_again(sessions: Sessions, post: Post) -> None:
    post()
    sent = Sent()
    announce(sessions, sent)
    assert announce(sessions, sent)
    assert sent.count == 2


def test_while_a_message_is_sent_no_transaction_is_open(sessions: Sessions, post: Post) -> None:
    post()
    seen: list[int] = []
    assert announce(sessions, lambda: seen.append(sessions.kw["bind"].pool.checkedout()))
    assert seen == [0]


def test_two_that_announce_at_once_both_send_and_neither_waits(sessions: Sessions, post: Post) -> None:
    post()
    inner = Sent()
    assert announce(sessions, lambda: announce(sessions, inner))
    assert inner.count == 1


def test_with_nothing_to_do_nothing_is_sent(sessions: Sessions, post: Post, claim: Callable[[], Job]) -> None:
    sent = Sent()
    assert not announce(sessions, sent)
    post()
    claim()
    assert not announce(sessions, sent)
    assert sent.count == 0


def test_a_job_whose_worker_died_is_announced(sessions: Sessions, post: Post, claim: Callable[[], Job]) -> None:
    post()
    claim()
    with session_scope(sessions) as session:
        session.execute(update(Job).values(lease_until=text("now() - interval '1 second'")))
    assert announce(sessions, Sent())


def test_a_job_that_this_worker_cannot_take_is_left_to_others(sessions: Sessions, post: Post) -> None:
    with session_scope(sessions) as session:
        note_worker(session, "small", "process", "queue", Device.CPU)
    post(device=Device.GPU)
    sent = Sent()
    assert not announce(sessions, sent, "small")
    assert announce(sessions, sent, "other")
    assert sent.count == 1


@pytest.mark.parametrize("is_waiting", [False, True])
def test_a_worker_with_nothing_to_do_is_alive_and_one_that_leaves_jobs_waiting_is_not(
    sessions: Sessions, post: Post, is_waiting: bool
) -> None:
    with session_scope(sessions) as session:
        note_worker(session, "worker", "process", "queue", Device.CPU)
        session.execute(update(Worker).values(last_seen=text("now() - interval '1 hour'")))
    if is_waiting:
        post()
    announce(sessions, Sent(), "worker")
    with session_scope(sessions) as session:
        assert len(living_workers(session, 60)) == (0 if is_waiting else 1)


@pytest.mark.parametrize(("is_busy", "expected"), [(False, True), (True, False)])
def test_an_idle_worker_announces_and_a_busy_one_leaves_it_to_others(
    sessions: Sessions, post: Post, is_busy: bool, expected: bool
) -> None:
    post()
    sent = Sent()
    announcer = Announcer(sessions, sent, lambda: is_busy, seconds=0.01)
    announcer.start()
    if expected:
        wait_until(lambda: sent.count)
    else:
        time.sleep(0.3)
    announcer.stop()
    announcer.join()
    assert (sent.count > 0) is expected


def test_the_announcer_outlives_a_broker_that_is_away(sessions: Sessions, post: Post) -> None:
    post()
    calls: list[int] = []

    def away_at_first() -> None:
        calls.append(1)
        if len(calls) < 3:
            no_broker()

    announcer = Announcer(sessions, away_at_first, lambda: False, seconds=0.01)
    announcer.start()
    wait_until(lambda: len(calls) >= 3)
    announcer.stop()
    announcer.join()
    assert len(calls) >= 3


def test_a_worker_that_drains_announces_nothing_and_takes_no_more_messages(sessions: Sessions, post: Post) -> None:
    post()
    with session_scope(sessions) as session:
        note_worker(session, "worker", "process", "queue", Device.CPU)
    sent, drained = Sent(), Sent()
    announcer = Announcer(sessions, sent, lambda: False, 1.0, "worker", on_drain=drained)
    announcer.once()
    with session_scope(sessions) as session:
        session.execute(update(Worker).values(is_draining=True))
    announcer.once()
    assert (sent.count, drained.count) == (1, 1)
