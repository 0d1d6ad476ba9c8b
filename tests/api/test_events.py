"""Events: in pages, and as a stream that starts anywhere, waits, survives, and ends with the job."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import httpx2
import pytest
from sqlalchemy import event, text

from store.repositories.keys import revoke_key
from store.session import session_scope
from tests.waiting import wait_until

TYPES = ["job.created", "job.fetching", "job.validating", "job.running", "job.packaging", "job.succeeded"]
SSE = {"Accept": "text/event-stream"}


@dataclass(frozen=True)
class Message:
    """A block of a stream: an event, or a comment."""

    id: int | None
    type: str
    data: dict | None
    comment: str


def messages(response: httpx2.Response) -> Iterator[Message]:
    """The blocks of a stream, as they come."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        data = json.loads(fields["data"]) if "data" in fields else None
        yield Message(int(fields["id"]) if "id" in fields else None, fields.get("event", ""), data, fields.get("", ""))
        fields = {}


def follow(live: str, job_id: str, headers: dict[str, str], **params: int):
    return httpx2.stream("GET", f"{live}/v1/jobs/{job_id}/events", headers=SSE | headers, params=params, timeout=20)


def events_of(response: httpx2.Response) -> list[Message]:
    return [message for message in messages(response) if message.data is not None]


def test_pages(api, stage):
    done = stage.succeeded({})
    first = api.get(f"/v1/jobs/{done}/events", params={"limit": 4}).json()
    assert [event["type"] for event in first["data"]] == TYPES[:4]
    assert (first["has_more"], first["next"]) == (True, 4)
    rest = api.get(f"/v1/jobs/{done}/events", params={"after": 4}).json()
    assert [event["seq"] for event in rest["data"]] == [5, 6]
    assert (rest["has_more"], rest["next"]) == (False, 6)
    assert api.get(f"/v1/jobs/{done}/events", params={"after": 6}).json() == {"data": [], "has_more": False, "next": 6}


def test_the_stream_of_an_ended_job_is_its_events_and_ends(live, stage, crew, client):
    done = stage.succeeded({})
    with follow(live, done, crew.headers) as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        assert response.headers["Cache-Control"] == "no-store"
        found = events_of(response)
    assert [message.type for message in found] == TYPES
    assert [message.id for message in found] == [message.data["seq"] for message in found] == [1, 2, 3, 4, 5, 6]
    pages = client.get(f"/v1/jobs/{done}/events", params={"limit": 50}, headers=crew.headers).json()["data"]
    assert [message.data for message in found] == pages


def test_a_stream_waits_for_what_happens_and_ends_after_the_last_event(live, stage, crew):
    job_id, found, has_ended = stage.running(), [], False
    with follow(live, job_id, crew.headers) as response:
        for message in messages(response):
            found.append(message)
            if message.comment and not has_ended:  # a heartbeat, as nothing happens
                stage.succeed(job_id, {})
                has_ended = True
    assert [message.type for message in found if message.data] == TYPES


def test_a_stream_goes_on_behind_the_last_event_seen(live, stage, crew, subtests):
    done = stage.succeeded({})
    for seen in range(7):
        headers = crew.headers | {"Last-Event-ID": str(seen)}
        with subtests.test(seen=seen), follow(live, done, headers, after=1) as response:
            assert [message.id for message in events_of(response)] == list(range(seen + 1, 7))
            # No content is the one answer that tells a browser not to connect again.
            assert response.status_code == (200 if seen < 6 else 204)


def test_a_stream_from_behind_the_last_event_is_empty_and_ends_with_the_job(live, stage, crew):
    done, running = stage.succeeded({}), stage.running()
    with follow(live, done, crew.headers, after=99) as response:
        assert events_of(response) == []
    with follow(live, done, crew.headers | {"Last-Event-ID": "99"}) as response:
        assert response.status_code == 204
    finish = threading.Timer(0.2, stage.succeed, (running, {}))
    finish.start()
    with follow(live, running, crew.headers, after=99) as response:
        assert events_of(response) == []
    finish.join()


STEP = {"name": "level_table", "done": 3, "known": 12, "detail": None, "seconds_left": 9.0, "curve": []}


@pytest.fixture
def often(app):
    """A service that tells of progress whenever there is some."""
    resources = app.state.resources
    resources.settings = resources.settings.model_copy(update={"event_progress_seconds": 0.01})


def test_a_stream_tells_how_far_a_long_phase_is(often, live, stage, crew, api):
    job_id = stage.running()
    found = []
    with follow(live, job_id, crew.headers) as response:
        stream = (message for message in messages(response) if message.data)
        for done in (None, 1, 2):
            if done is not None:
                step = STEP if done == 1 else None
                counted = {"done": done, "known": 2, "seconds": 1.0, "seconds_left": 4.5 - done, "step": step}
                stage.add_trials(job_id, [], counted)
            found.append(next(message for message in stream if message.type == "job.progress"))
        stage.succeed(job_id, {})
        rest = [message for message in stream if message.type != "job.progress"]
    assert [message.data["data"] for message in found] == [
        {
            "state": "running",
            "message": "the untouched model is being looked at",
            **dict.fromkeys(("done", "known", "seconds_left", "step")),
        },
        {
            "state": "running",
            "message": "1 of 2 known trials are done, about 4 s left; measuring what each size of each block costs: 3 of 12, "
            "about 9 s left",
            "done": 1,
            "known": 2,
            "seconds_left": 3.5,
            "step": STEP,
        },
        {
            "state": "running",
            "message": "all 2 known trials are done; the result is being made of them",
            "done": 2,
            "known": 2,
            "seconds_left": 2.5,
            "step": None,
        },
    ]
    assert [message.id for message in found] == [None, None, None], "so that Last-Event-ID stays"
    assert {message.data["seq"] for message in found} == {4}
    assert [message.id for message in rest] == [5, 6]
    stored = api.get(f"/v1/jobs/{job_id}/events", params={"limit": 50}).json()["data"]
    assert [event["type"] for event in stored] == TYPES


def test_progress_that_does_not_change_is_told_once_and_not_to_a_key_that_ended(often, live, stage, crew, sessions):
    job_id = stage.running()
    with follow(live, job_id, crew.headers) as response:
        stream = messages(response)
        seen = [next(stream) for _ in range(10)]
        assert [message.type for message in seen].count("job.progress") == 1
        assert seen[-1].comment, "a heartbeat"
        with session_scope(sessions) as session:
            end_key(session, crew, "revoked")
        stage.add_trials(job_id, [], {"done": 1, "known": 2, "seconds": 1.0, "seconds_left": 1.0})
        assert [message for message in stream if message.data] == []


def test_a_job_that_waits_makes_no_progress(often, live, stage, crew):
    job_id = stage.queued()
    with follow(live, job_id, crew.headers) as response:
        assert [
            message.type for _, message in zip(range(6), messages(response), strict=False) if message.data
        ] == TYPES[:1]


def test_many_streams_share_a_look(live, stage, crew, app):
    job_id, looks, resources = stage.running(), [], app.state.resources
    with ExitStack() as watched:
        streams = [messages(watched.enter_context(follow(live, job_id, crew.headers))) for _ in range(10)]
        assert all(next(message for message in stream if message.data) for stream in streams)

        def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            if "event_count" in statement:
                looks.append(statement)

        event.listen(resources.engine, "before_cursor_execute", note)
        begun = time.monotonic()
        wait_until(lambda: len(looks) >= 5)
        seen, rounds = len(looks), (time.monotonic() - begun) / resources.settings.event_poll_seconds
        stage.succeed(job_id, {})
        assert all([message for message in stream if message.data][-1].type == "job.succeeded" for stream in streams)
    assert seen <= 2 + rounds, "a look a poll, however many streams wait for it"


def test_a_retried_jobs_stream_goes_on_behind_the_first_end(live, api, stage, crew):
    failed = stage.failed()
    api.post(f"/v1/jobs/{failed}/retry")
    api.post(f"/v1/jobs/{failed}/cancel")
    with follow(live, failed, crew.headers) as response:
        types = [message.type for message in events_of(response)]
    assert types[-3:] == ["job.failed", "job.queued", "job.cancelled"]


def test_the_stream_of_a_deleted_job_ends(live, api, stage, crew):
    job_id = stage.queued()
    with follow(live, job_id, crew.headers) as response:
        stream = messages(response)
        assert next(message for message in stream if message.data).type == "job.created"
        api.post(f"/v1/jobs/{job_id}/cancel")
        api.delete(f"/v1/jobs/{job_id}")
        rest = [message.type for message in stream if message.data]
    assert rest in ([], ["job.cancelled"])


def test_watchers_hold_no_session_while_nothing_happens(live, stage, crew, sessions, app):
    job_id = stage.running()
    watching = [follow(live, job_id, crew.headers) for _ in range(5)]
    streams = [stream.__enter__() for stream in watching]
    for stream in streams:
        assert next(message for message in messages(stream) if message.data).id == 1
    busy = []
    for _ in range(20):
        busy.append(app.state.resources.engine.pool.checkedout())
        with session_scope(sessions) as session:
            query = text("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'")
            busy.append(session.execute(query).scalar_one())
        time.sleep(0.01)
    stage.succeed(job_id, {})
    for stream in watching:
        stream.__exit__(None, None, None)
    assert min(busy) == 0
    assert sorted(busy)[len(busy) // 2] == 0  # a look is short, so mostly none is under way


def test_a_stream_outlives_an_outage_of_the_database(live, stage, crew, outage):
    job_id = stage.running()
    with follow(live, job_id, crew.headers) as response:
        stream = messages(response)
        assert next(message for message in stream if message.data).id == 1
        with outage():
            time.sleep(0.2)
        stage.succeed(job_id, {})
        assert [message.type for message in stream if message.data] == TYPES[1:]


def test_streams_end_when_the_server_is_told_to_stop(live, app, stage, crew):
    job_id = stage.running()
    with follow(live, job_id, crew.headers) as response:
        stopping = threading.Timer(0.2, app.state.resources.stop)
        stopping.start()
        found = events_of(response)
    stopping.join()
    assert [message.type for message in found] == TYPES[:4]


def end_key(session, crew, how: str) -> None:
    key_id = crew.key.split("_")[1]
    if how == "revoked":
        assert revoke_key(session, key_id)
    else:
        session.execute(text("UPDATE api_keys SET expires_at = now() WHERE id = :id"), {"id": key_id})


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_a_silent_stream_ends_when_its_key_does(live, stage, crew, sessions, how):
    job_id = stage.running()
    with follow(live, job_id, crew.headers) as response:
        stream = messages(response)
        assert [next(stream).type for _ in range(5)][1:] == TYPES[:4]
        with session_scope(sessions) as session:
            end_key(session, crew, how)
        assert [message for message in stream if message.data] == []
    with follow(live, job_id, crew.headers) as response:
        assert response.status_code == 401


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_nothing_is_told_after_the_end_of_a_key(app, live, stage, crew, sessions, how):
    resources = app.state.resources
    resources.settings = resources.settings.model_copy(update={"event_heartbeat_seconds": 60})
    job_id = stage.running()
    with follow(live, job_id, crew.headers) as response:
        stream = messages(response)
        assert [next(stream).type for _ in range(5)][1:] == TYPES[:4]
        with session_scope(sessions) as session:
            end_key(session, crew, how)
        stage.succeed(job_id, {})
        assert [message for message in stream if message.data] == []


def test_bad_questions(api, stage):
    job_id = stage.queued()
    path = f"/v1/jobs/{job_id}/events"
    assert api.get(path, headers={"Accept": "text/csv"}).status_code == 406
    assert api.get(path, params={"after": -1}).json()["errors"][0]["parameter"] == "after"
    assert api.get(path, headers=SSE | {"Last-Event-ID": "x"}).json()["errors"][0]["parameter"] == "last-event-id"
