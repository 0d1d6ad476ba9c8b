"""What becomes of requests on a bad way: each is done once, or its failure is told."""

import socket
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from axformer.client import Client, ServerFailedError, TooManyRequestsError, UnexpectedAnswerError, UnreachableError
from tests.api.conftest import Crew, Stage, trial
from tests.client.conftest import QUICK, beside, play_worker
from tests.client.unreliable import Fault, Unreliable
from tests.loopback import Answer, Loopback

FAULTS = [
    Fault(lost_before=True),
    Fault(lost_after=True),
    Fault(cut_after=10),
    Fault(status=502),
    Fault(status=503),
    Fault(status=503, headers={"Retry-After": "0"}),
    Fault(status=504),
    Fault(status=429, headers={"Retry-After": "0"}),
]


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(FAULTS), max_size=QUICK.attempts - 1))
@example([Fault(lost_after=True)] * (QUICK.attempts - 1))
def test_a_job_that_is_sent_many_times_is_one_job(
    patient: Client, proxy: Unreliable, job: dict[str, str], faults: list[Fault]
) -> None:
    before = {found.id for found in patient.jobs()}
    proxy.faults, proxy.concerns = list(faults), lambda method, path: method == "POST"
    made = patient.submit("once", **job)
    assert proxy.faults == []
    assert {found.id for found in patient.jobs()} - before == {made.id}


def test_a_key_of_one_s_own_makes_one_job_in_any_number_of_calls(patient: Client, job: dict[str, str]) -> None:
    made = {patient.submit("mine", **job, idempotency_key="nightly-1").id for _ in range(3)}
    assert len(made) == 1
    assert patient.submit("mine", **job).id not in made


def test_after_the_last_attempt_the_failure_is_told(patient: Client, proxy: Unreliable) -> None:
    proxy.faults = [Fault(status=503)] * QUICK.attempts
    with pytest.raises(ServerFailedError, match="503 Service Unavailable; try again later") as failed:
        patient.queue()
    assert (failed.value.status, failed.value.code, len(proxy.requests)) == (503, "http_503", QUICK.attempts)


def test_the_service_says_how_long_to_wait(patient: Client, proxy: Unreliable) -> None:
    proxy.faults = [Fault(status=503, headers={"Retry-After": "1"})]
    begun = time.monotonic()
    patient.queue()
    assert time.monotonic() - begun >= 1.0


def test_who_is_to_wait_for_too_long_is_told_at_once(patient: Client, proxy: Unreliable) -> None:
    proxy.faults = [Fault(status=429, headers={"Retry-After": "3600"})]
    with pytest.raises(TooManyRequestsError) as refused:
        patient.queue()
    assert refused.value.retry_after == 3600
    assert len(proxy.requests) == 1


@pytest.mark.parametrize("fault", [Fault(lost_after=True), Fault(status=502)])
def test_what_may_not_be_done_twice_is_not_sent_twice(
    patient: Client, proxy: Unreliable, stage: Stage, fault: Fault
) -> None:
    job_id = stage.queued()
    patient.cancel(job_id)
    proxy.faults, proxy.requests[:] = [fault], []
    with pytest.raises((UnreachableError, ServerFailedError)):
        patient.retry(job_id)
    assert len(proxy.requests) == 1
    proxy.faults = [Fault(status=503)]  # it was certainly not served
    if fault.lost_after:
        assert patient.job(job_id).state == "queued"
    else:
        assert patient.retry(job_id).state == "queued"


def test_nothing_at_the_address_is_told_with_the_address(crew: Crew) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}", crew.key, patience=QUICK) as client:
        with pytest.raises(UnreachableError, match=f"http://127.0.0.1:{port} does not answer") as failed:
            client.queue()
        assert not failed.value.may_have_acted


@pytest.mark.parametrize("body", [b"<html>Welcome</html>", b'{"data": "none"}'])
def test_something_else_at_the_address_is_told(body: bytes) -> None:
    with (
        Loopback(lambda method, path, headers: Answer(200, {"Content-Type": "text/html"}, body)) as other,
        Client(other.url, "axk_x", patience=QUICK) as client,
    ):
        with pytest.raises(UnexpectedAnswerError, match="check the address"):
            client.queue()
        with pytest.raises(UnexpectedAnswerError, match="text/event-stream"):
            list(client.stream("job_x"))


def test_what_runs_on_this_machine_is_not_asked_through_a_proxy(
    live: str, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with Client(live, crew.key, patience=QUICK) as client:
        assert client.queue().data == []


def test_a_key_does_not_follow_a_redirect() -> None:
    with (
        Loopback(lambda method, path, headers: Answer(200)) as other,
        Loopback(lambda method, path, headers: Answer(302, {"Location": f"{other.url}/v1/queue"})) as first,
        Client(first.url, "axk_secret", patience=QUICK) as client,
    ):
        with pytest.raises(Exception, match="302"):
            client.queue()
        assert other.requests == []


def test_a_stream_that_breaks_goes_on_behind_the_last_event(patient: Client, proxy: Unreliable, stage: Stage) -> None:
    job_id, go_on = stage.queued(), threading.Event()
    proxy.faults = [
        Fault(cut_after=30),  # within the first event
        Fault(lost_before=True),
        Fault(cut_after=400),
        Fault(status=503),
        Fault(cut_after=700),
    ]
    seen = []
    with beside(lambda: play_worker(stage, job_id, go_on)):
        for event in patient.stream(job_id):
            seen.append((event.seq, event.type))
            go_on.set()
    assert [seq for seq, _ in seen] == list(range(1, len(seen) + 1))
    assert seen[-1][1] == "job.succeeded"
    asked = [headers.get("last-event-id") for _, path, headers in proxy.requests if path.endswith("/events")]
    assert asked[0] == "0"
    assert len(asked) >= 6
    assert proxy.faults == []


def test_a_trace_that_breaks_off_goes_on_behind_the_last_trial(
    patient: Client, proxy: Unreliable, stage: Stage
) -> None:
    trials = [trial(seq) for seq in range(40)]
    job_id = stage.running(trials)
    proxy.faults = [Fault(cut_after=1000), Fault(lost_before=True), Fault(cut_after=2500)]
    assert list(patient.trace(job_id)) == trials


def test_a_saved_trace_that_breaks_off_is_written_anew(
    patient: Client, proxy: Unreliable, stage: Stage, tmp_path: Path
) -> None:
    job_id = stage.running([trial(seq) for seq in range(40)])
    proxy.faults = [Fault(cut_after=1000), Fault(cut_after=2000)]
    lines = patient.save_trace(job_id, tmp_path / "trace.jsonl").read_text().splitlines()
    assert len(lines) == 40
    proxy.faults = [Fault(cut_after=100)] * QUICK.attempts
    with pytest.raises(UnreachableError, match="broke off"):
        patient.save_trace(job_id, tmp_path / "other.jsonl")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["trace.jsonl"]


def test_following_a_job_outlasts_a_service_that_is_away(patient: Client, proxy: Unreliable, stage: Stage) -> None:
    job_id, lost = stage.succeeded({}, [trial(seq) for seq in range(5)]), []
    proxy.faults = [Fault(status=503)] * (QUICK.attempts + 3)
    (update,) = patient.follow(job_id, lost=lost.append)
    assert len(update.trials) == 5
    assert [error.status for error in lost] == [503]


def test_an_upload_is_sent_again_from_its_beginning(patient: Client, proxy: Unreliable, tmp_path: Path) -> None:
    data = tmp_path / "dev.jsonl"
    data.write_bytes(b"row\n" * 100_000)
    proxy.faults = [Fault(lost_before=True), Fault(status=503)]
    sent: list[int] = []
    assert patient.upload(data, sent.append).bytes == sum(sent) == 400_000
