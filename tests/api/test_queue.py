"""The queue: positions are the order of the claims, others stay unnamed, and estimates follow from what was measured."""

import threading
import time
from collections import Counter
from contextlib import contextmanager

import pytest
from sqlalchemy import text

from api.services.queue_view import Views
from axformer.wire.devices import Device
from store.repositories import claims, jobs, leases, moves
from store.repositories.queue import waiting_jobs
from store.repositories.teams import TeamLimits, create_team, set_limits
from store.repositories.workers import note_worker
from store.session import session_scope
from tests.specs import spec_of
from tests.waiting import wait_until

GB = 10**9


def of_rivals(sessions, rivals, **changes):
    with session_scope(sessions) as session:
        new = jobs.NewJob(rivals.id, "x", spec_of(), **changes)
        return jobs.create_job(session, new).job.id


def start_worker(sessions, name="w", device=Device.CPU, memory=None):
    with session_scope(sessions) as session:
        note_worker(session, name, name, "axformer", device, memory=memory)


def look(api):
    queue = api.get("/v1/queue").json()
    return queue, {item["id"]: item for item in queue["data"]}


def test_an_empty_queue(api):
    queue, _ = look(api)
    assert (queue["data"], queue["queued_of_all_teams"], queue["workers_alive"], queue["workers_busy"]) == ([], 0, 0, 0)
    assert set(queue["counts"].values()) == {0}
    assert queue["workers"] == []


def test_positions_are_the_order_of_the_claims(api, stage, rivals, sessions):
    mine = [stage.queued(priority=priority) for priority in (0, 5, 0)]
    theirs = of_rivals(sessions, rivals, priority=1)
    queue, items = look(api)
    positions = {job: item["position"] for job, item in items.items()}
    assert (queue["queued_of_all_teams"], queue["counts"]["queued"]) == (4, 3)
    assert theirs not in positions
    with session_scope(sessions) as session:
        order = [claims.claim_next(session, "worker", 60).id for _ in range(4)]
    assert positions == {job: order.index(job) + 1 for job in mine}
    assert [item["id"] for item in queue["data"]] == [job for job in order if job in mine]


def test_jobs_ahead_are_told_by_team_and_other_teams_stay_unnamed(api, stage, rivals, sessions):
    for _ in range(2):
        of_rivals(sessions, rivals)
    mine = [stage.queued() for _ in range(2)]
    _, items = look(api)
    first, second = (items[job] for job in mine)
    assert (first["position"], first["ahead"]) == (2, [{"team": None, "jobs": 1}])
    assert second["position"] in (3, 4)
    assert second["ahead"][0] == {"team": "crew", "jobs": 1}
    assert sum(team["jobs"] for team in second["ahead"]) == second["position"] - 1
    told = api.get("/v1/queue").text
    assert "rivals" not in told
    assert rivals.id not in told


def test_jobs_ahead_are_those_with_lower_positions_each_team_by_itself_most_first(api, stage, crew, rivals, sessions):
    with session_scope(sessions) as session:
        third = create_team(session, "third")
    teams = {stage.queued(): crew.id for _ in range(3)}
    teams |= {of_rivals(sessions, rivals): rivals.id for _ in range(4)}
    teams |= {of_rivals(sessions, third, priority=priority): third.id for priority in range(2)}
    _, items = look(api)
    with session_scope(sessions) as session:
        order = [one.job_id for one in waiting_jobs(session)]
    for job, item in items.items():
        before = Counter(teams[one] for one in order[: item["position"] - 1])
        own = before.pop(crew.id, 0)
        named = [{"team": "crew", "jobs": own}] if own else []
        assert item["ahead"] == named + [{"team": None, "jobs": jobs} for jobs in sorted(before.values(), reverse=True)]
        assert order[item["position"] - 1] == job
    assert max(len(item["ahead"]) for item in items.values()) == 3


def test_a_job_tells_its_own_place_while_it_is_queued(api, stage):
    running = stage.running([], {"done": 1, "known": 5, "seconds": 10.0, "seconds_left": 40.0})
    queued = stage.queued()
    _, items = look(api)
    place = api.get(f"/v1/jobs/{queued}").json()["queue"]
    assert place == {name: items[queued][name] for name in place}
    assert place["position"] == 1
    assert api.get(f"/v1/jobs/{running}").json()["queue"] is None


def usual_seconds(queue):
    """How long the finished passes took, as the queue says it; rounded to a tenth."""
    return float(queue["eta_method"].split("(axformer ")[1].split(" s")[0])


def test_estimates_come_from_progress_and_finished_jobs(api, stage):
    stage.succeeded({})
    running = stage.running([], {"done": 1, "known": 5, "seconds": 10.0, "seconds_left": 40.0})
    waiting = stage.queued()
    queue, items = look(api)
    first, second = items[running], items[waiting]
    assert (first["state"], first["position"], first["ahead"], first["starts_in_seconds"]) == (
        "running",
        None,
        None,
        None,
    )
    assert first["ends_in_seconds"] == 40.0
    assert (second["position"], second["starts_in_seconds"]) == (1, 40.0)
    assert second["ends_in_seconds"] == pytest.approx(40.0 + usual_seconds(queue), abs=0.1)
    assert (queue["workers_alive"], queue["workers_busy"]) == (1, 1)
    assert "1 living workers" in queue["eta_method"]
    assert "of its method or kind (axformer 0." in queue["eta_method"]


def test_a_job_is_estimated_by_jobs_of_its_own_method_alone(api, stage, body):
    stage.succeeded({})
    stage.running([], {"done": 1, "known": 5, "seconds": 10.0, "seconds_left": 40.0})
    pass_, compression = (
        stage.queued(),
        api.post("/v1/jobs", json=body | {"config": {"method": "compress"}}).json()["id"],
    )
    queue, items = look(api)
    assert items[pass_]["ends_in_seconds"] == pytest.approx(40.0 + usual_seconds(queue), abs=0.1)
    assert items[compression]["starts_in_seconds"] is not None
    assert items[compression]["ends_in_seconds"] is None


def test_a_job_that_has_begun_is_estimated_by_its_own_measure(api, stage, sessions):
    job = stage.running([], {"done": 1, "known": 5, "seconds": 10.0, "seconds_left": 40.0})
    with session_scope(sessions) as session:
        leases.release(session, job, moves.lock_job(session, job).fence, "its slice is over")
    start_worker(sessions)
    _, items = look(api)
    assert (items[job]["starts_in_seconds"], items[job]["ends_in_seconds"]) == (0.0, 40.0)


def test_without_figures_no_end_is_estimated_and_a_start_after_a_slice(api, stage, settings):
    running = stage.running()
    waiting = stage.queued()
    _, items = look(api)
    assert (items[running]["starts_in_seconds"], items[running]["ends_in_seconds"]) == (None, None)
    assert items[waiting]["starts_in_seconds"] == pytest.approx(settings.slice_seconds, abs=30)
    assert items[waiting]["ends_in_seconds"] is None


def test_workers_are_alive_while_they_are_seen_and_busy_while_they_hold_a_job(api, stage, sessions, settings):
    start_worker(sessions, "worker-1", Device.GPU)
    start_worker(sessions, "idle", Device.GPU)
    start_worker(sessions, "small", Device.CPU)
    start_worker(sessions, "dead")
    with session_scope(sessions) as session:
        silence = f"make_interval(secs => {settings.lease_seconds + 1})"
        session.execute(text(f"UPDATE workers SET last_seen = last_seen - {silence} WHERE name = 'dead'"))
    stage.running()
    queue, _ = look(api)
    counts = [{name: kind[name] for name in ("queue", "device", "alive", "busy")} for kind in queue["workers"]]
    assert counts == [
        {"queue": "axformer", "device": "cpu", "alive": 1, "busy": 0},
        {"queue": "axformer", "device": "gpu", "alive": 2, "busy": 1},
    ]
    assert (queue["workers_alive"], queue["workers_busy"]) == (3, 1)
    assert "3 living workers that can take them, 2 of them idle" in queue["eta_method"]


def test_a_job_that_no_living_worker_can_take_says_so(api, stage, sessions):
    for_gpu, for_any = stage.queued(device=Device.GPU), stage.queued()
    _, items = look(api)
    assert {item["waits_for"] for item in items.values()} == {"worker"}
    assert "no worker is alive" in items[for_any]["reason"]
    start_worker(sessions)
    _, items = look(api)
    assert (items[for_gpu]["waits_for"], items[for_gpu]["device"]) == ("worker", "gpu")
    assert "no gpu worker is alive" in items[for_gpu]["reason"]
    assert items[for_any]["waits_for"] == "turn"
    assert items[for_any]["starts_in_seconds"] == 0.0
    assert items[for_gpu]["starts_in_seconds"] is None


def test_each_worker_tells_its_memory_and_what_it_runs_of_ones_own_team(api, stage, rivals, sessions):
    start_worker(sessions, "worker-1", Device.GPU, 80 * GB)
    start_worker(sessions, "idle", Device.GPU, 16 * GB)
    own = stage.running()
    queue, _ = look(api)
    idle, busy = queue["workers"][0]["each"]
    nothing = {"is_busy": False, "job_id": None, "job_name": None, "since": None}
    assert idle == {"name": "idle", "memory": 16 * GB, **nothing}
    assert (busy["name"], busy["memory"], busy["is_busy"], busy["job_id"]) == ("worker-1", 80 * GB, True, own)
    assert busy["job_name"]
    assert busy["since"]
    with session_scope(sessions) as session:
        session.execute(text(f"UPDATE jobs SET team_id = '{rivals.id}'"))
    busy = look(api)[0]["workers"][0]["each"][1]
    assert (busy["is_busy"], busy["job_id"], busy["job_name"]) == (True, None, None)
    assert busy["since"]


def test_a_job_that_no_living_worker_has_the_memory_for_says_so(api, stage, sessions, body):
    asked = api.post("/v1/jobs", json=body | {"device": "gpu", "device_memory": 40 * GB})
    assert asked.status_code == 202, asked.text
    job = asked.json()
    assert job["memory"] == {"asked": 40 * GB, "cpu": None, "gpu": None}
    for name, device, memory in (("a", Device.GPU, 16 * GB), ("b", Device.GPU, 12 * GB), ("c", Device.CPU, 99 * GB)):
        start_worker(sessions, name, device, memory)
    place = look(api)[1][job["id"]]
    assert (place["waits_for"], place["starts_in_seconds"]) == ("worker", None)
    assert "no living gpu worker has the 40.00 GB of memory" in place["reason"]
    assert "the largest has 16.00 GB" in place["reason"]
    start_worker(sessions, "d", Device.GPU, 80 * GB)
    place = look(api)[1][job["id"]]
    assert (place["waits_for"], place["starts_in_seconds"]) == ("turn", 0.0)


def test_a_job_that_its_teams_limit_holds_back_says_so(api, stage, sessions, crew):
    with session_scope(sessions) as session:
        set_limits(session, crew.id, TeamLimits(running=1))
    start_worker(sessions)
    stage.running()
    waiting = stage.queued()
    _, items = look(api)
    assert items[waiting]["waits_for"] == "running_limit"
    assert "may run 1 jobs at a time" in items[waiting]["reason"]
    with session_scope(sessions) as session:
        assert claims.claim_next(session, "w", 60) is None


def test_those_who_look_again_share_a_view_until_it_is_old(sessions, settings, stage):
    first = stage.queued()
    patient, impatient = views_of(sessions, settings, 1000.0), views_of(sessions, settings, 0.0)
    view, seen = patient.get(), impatient.get()
    second = stage.queued()
    assert patient.get() is view
    assert set(seen.by_id) == {first}
    assert set(impatient.get().by_id) == {first, second}


def test_who_comes_while_a_view_is_made_gets_the_old_one_and_waits_only_for_the_first(sessions, settings, stage):
    views, answers = views_of(sessions, settings, 0.0), []

    def look_at():
        answers.append(views.get())

    def look_at_once(lookers):
        threads = [threading.Thread(target=look_at) for _ in range(lookers)]
        for thread in threads:
            thread.start()
        return threads

    with blocked_jobs(sessions):
        threads = look_at_once(5)
        time.sleep(0.2)
        assert answers == []
    for thread in threads:
        thread.join()
    old = answers[-1]
    answers.clear()
    with blocked_jobs(sessions):
        threads = look_at_once(5)
        wait_until(lambda: len(answers) == 4)
        assert all(answer is old for answer in answers)
    for thread in threads:
        thread.join()
    assert len(answers) == 5


def test_a_job_that_came_after_the_look_has_no_place_yet(app, api, stage, sessions, settings):
    app.state.resources.queue_views = views_of(sessions, settings, 1000.0)
    first = stage.queued()
    look(api)
    second = stage.queued()
    queue, items = look(api)
    assert set(items) == {first}
    assert queue["counts"]["queued"] == 2
    assert api.get(f"/v1/jobs/{first}").json()["queue"]["position"] == 1
    assert api.get(f"/v1/jobs/{second}").json()["queue"] is None


def views_of(sessions, settings, seconds):
    return Views(sessions, settings.model_copy(update={"queue_view_seconds": seconds}))


@contextmanager
def blocked_jobs(sessions):
    """Nobody can read the jobs meanwhile."""
    with session_scope(sessions) as session:
        session.execute(text("LOCK TABLE jobs"))
        yield
