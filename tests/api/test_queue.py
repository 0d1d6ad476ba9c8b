"""The queue: positions are the order of the claims, and estimates follow from what was measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.services.queue import starting_times
from store.repositories import jobs, leases
from store.session import session_scope

SECONDS = st.floats(0, 1e6)


@given(busy=st.lists(SECONDS, min_size=1, max_size=5), waiting=st.integers(0, 20), typical=SECONDS)
def test_jobs_start_in_order_and_no_more_at_a_time_than_there_are_workers(busy, waiting, typical):
    starts = starting_times(busy, waiting, typical)
    assert len(starts) == waiting
    assert starts == sorted(starts)
    for place, start in enumerate(starts):
        ends = busy + [begun + typical for begun in starts[:place]]
        assert sum(end > start for end in ends) < len(busy)


@given(waiting=st.integers(0, 5))
def test_what_is_not_known_is_not_estimated(waiting):
    unknown = [None] * waiting
    assert starting_times([], waiting, 10.0) == unknown
    assert starting_times([1.0], waiting, None) == unknown
    assert starting_times([1.0, None], waiting, 10.0) == unknown


def test_an_empty_queue(api):
    queue = api.get("/v1/queue").json()
    assert (queue["data"], queue["queued_of_all_teams"], queue["workers_busy"]) == ([], 0, 0)
    assert set(queue["counts"].values()) == {0}


def test_positions_are_the_order_of_the_claims(api, stage, rivals, sessions):
    mine = [stage.queued(priority=priority) for priority in (0, 5, 0)]
    with session_scope(sessions) as session:
        plain = jobs.find_job(session, mine[0], stage.team_id)
        new = jobs.NewJob(rivals.id, "x", plain.checkpoint, plain.validation, "paper", {}, priority=1)
        theirs = jobs.create_job(session, new).job.id
    queue = api.get("/v1/queue").json()
    positions = {item["id"]: item["position"] for item in queue["data"]}
    assert (queue["queued_of_all_teams"], queue["counts"]["queued"]) == (4, 3)
    assert theirs not in positions
    with session_scope(sessions) as session:
        claims = [leases.claim_next(session, "worker", 60).id for _ in range(4)]
    assert positions == {job: claims.index(job) + 1 for job in mine}
    assert [item["id"] for item in queue["data"]] == [job for job in claims if job in mine]


def test_estimates_come_from_progress_and_finished_jobs(api, stage):
    stage.succeeded({})
    running = stage.running([], {"done": 1, "known": 5, "seconds": 10.0, "seconds_left": 40.0})
    waiting = stage.queued()
    queue = api.get("/v1/queue").json()
    first, second = queue["data"]
    assert (first["id"], first["state"], first["position"], first["starts_in_seconds"]) == (
        running,
        "running",
        None,
        None,
    )
    assert first["ends_in_seconds"] == 40.0
    assert (second["id"], second["position"], second["starts_in_seconds"]) == (waiting, 1, 40.0)
    assert second["ends_in_seconds"] == pytest.approx(40.0, abs=5)  # and the little that the finished job took
    assert queue["workers_busy"] == 1
    assert "1 workers" in queue["eta_method"]
    assert "last 1 succeeded" in queue["eta_method"]


def test_without_figures_there_is_no_estimate(api, stage):
    stage.running()
    stage.queued()
    queue = api.get("/v1/queue").json()
    assert [(item["starts_in_seconds"], item["ends_in_seconds"]) for item in queue["data"]] == [(None, None)] * 2
