"""In which order jobs of several teams are claimed: by cases, and by the laws that the order must keep."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select

from axformer.wire.devices import Device
from store.repositories import claims, leases
from store.repositories.line import Abilities, Rules, settle_turns, standings
from store.repositories.queue import waiting_jobs
from store.repositories.steering import retry_job
from store.repositories.teams import TeamLimits, set_limits
from store.session import Sessions, session_scope
from store.tables.jobs import Job
from store.tables.teams import Team
from store.tables.workers import TeamTurn
from tests.store.crowd import Crowd

ETERNAL = Rules(half_life_seconds=1e12)
"""Nothing that was used fades, so that sums can be compared."""
LAW = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def empty(sessions: Sessions) -> None:
    with session_scope(sessions) as session:
        for table in (Job, TeamTurn, Team):
            session.execute(delete(table))


@dataclass(frozen=True)
class Case:
    """A queue and the order in which it is to be claimed. A job is written ``team priority waited-minutes``."""

    says: str
    jobs: str
    order: str
    used: dict[str, float] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)


CASES = [
    Case("the oldest first", "a 0 1, a 0 3, a 0 2", "2 3 1"),
    Case("priority before age", "a 0 3, a 1 0, a 2 0", "3 2 1"),
    Case("a point of priority is five minutes", "a 1 0, a 0 4, a 0 6", "3 1 2"),
    Case("teams take turns", "a 0 9, a 0 8, a 0 7, b 0 2, b 0 1", "1 4 2 5 3"),
    Case("priority is of no use against other teams", "a 100 9, a 100 8, b 0 1", "1 3 2"),
    Case("least used time first", "a 0 9, a 0 8, b 0 2, c 0 1", "4 3 1 2", used={"a": 900, "b": 500}),
    Case("fewest running jobs first", "a 0 9, b 0 2", "2 1", used={"b": 900}, running={"a": 1}),
    Case("each claim counts", "a 0 9, b 0 3, b 0 2, b 0 1", "2 3 1 4", used={"b": 900}, running={"a": 2}),
    Case("no more than a team may run", "a 0 9, a 0 8, a 0 7, b 0 2, b 0 1", "1 4 5", limits={"a": 1}),
    Case("those that run already count", "a 0 9, b 0 2", "2", running={"a": 1}, limits={"a": 1}),
    Case("a team may be stopped", "a 0 9, b 0 2", "2", limits={"a": 0}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_the_order_of_claims(sessions: Sessions, case: Case) -> None:
    crowd = Crowd(sessions)
    posted = [words.split() for words in case.jobs.split(", ")]
    for number, name in enumerate(sorted({team for team, _, _ in posted})):
        # Apart by more than passes while the test claims.
        crowd.team(name, used=case.used.get(name, 10.0 * number))
        for _ in range(case.running.get(name, 0)):
            crowd.post(name)
            crowd.claim()
        with session_scope(sessions) as session:
            set_limits(session, crowd.ids[name], TeamLimits(running=case.limits.get(name)))
    for number, (team, priority, minutes) in enumerate(posted, 1):
        crowd.post(team, str(number), priority=int(priority), waited=60 * float(minutes))
    assert " ".join(crowd.claims()) == case.order


@dataclass(frozen=True)
class Posted:
    """One job of a drawn queue."""

    team: int
    priority: int
    waited: int


QUEUES = st.lists(st.builds(Posted, st.integers(0, 3), st.integers(-3, 3), st.integers(0, 2000)), max_size=12)


def post_all(crowd: Crowd, queue: Sequence[Posted]) -> None:
    for number in range(4):
        crowd.team(str(number), used=1000.0 * (number * 7 % 4))  # apart by more than passes while a test claims
    for number, one in enumerate(queue):
        crowd.post(str(one.team), str(number), priority=one.priority, waited=one.waited)


@LAW
@given(queue=QUEUES, ended=st.data())
def test_positions_are_the_order_of_the_claims(sessions: Sessions, queue: list[Posted], ended: st.DataObject) -> None:
    empty(sessions)
    crowd = Crowd(sessions)
    post_all(crowd, queue)
    for _ in range(ended.draw(st.integers(0, len(queue)), label="claimed before")):
        crowd.claim()
    with session_scope(sessions) as session:
        line = waiting_jobs(session)
    assert [one.place for one in line] == list(range(1, len(line) + 1))
    claimed = []
    while (job := crowd.claim()) is not None:
        claimed.append(job.id)
    assert claimed == [one.job_id for one in line]


@LAW
@given(queue=QUEUES)
def test_a_job_is_overtaken_by_its_own_team_for_no_longer_than_its_priority_says(
    sessions: Sessions, queue: list[Posted]
) -> None:
    empty(sessions)
    crowd = Crowd(sessions)
    post_all(crowd, queue)
    claimed = [queue[int(name)] for name in crowd.claims()]
    assert len(claimed) == len(queue)
    for place, first in enumerate(claimed):
        for second in claimed[place + 1 :]:
            if first.team == second.team:
                head_start = crowd.rules.priority_seconds * (first.priority - second.priority)
                assert second.waited - first.waited <= head_start + 1  # and the moment that posting takes


@pytest.mark.slow
@LAW
@given(
    teams=st.integers(2, 4),
    workers=st.integers(1, 3),
    seconds=st.lists(st.sampled_from([100.0, 500.0, 2000.0, 10000.0]), min_size=12, max_size=24),
)
def test_teams_that_always_wait_get_the_same_time_within_the_length_of_a_job(
    sessions: Sessions, teams: int, workers: int, seconds: list[float]
) -> None:
    empty(sessions)
    crowd = Crowd(sessions, ETERNAL)
    for team in map(str, range(teams)):
        crowd.team(team)
        for _ in range(workers):
            crowd.post(team, team)
    running: list[tuple[float, Job]] = []
    had = dict.fromkeys(crowd.ids, 0.0)
    for length in seconds:
        job = crowd.claim()
        assert job is not None
        crowd.post(job.name, job.name)
        running.append((length, job))
        if len(running) < workers:
            continue
        step = min(left for left, _ in running)
        crowd.wait(step)
        for _, one in running:
            had[one.name] += step
        for left, one in running:
            if left == step:
                crowd.end(one)
        running = [(left - step, one) for left, one in running if left > step]
        assert max(had.values()) - min(had.values()) <= max(seconds)


def test_a_job_of_the_least_priority_is_claimed_however_many_of_the_highest_are_posted(sessions: Sessions) -> None:
    crowd = Crowd(sessions)
    crowd.team("a")
    last = crowd.post("a", "last", priority=-100)
    claims = 0
    while True:
        crowd.post("a", "urgent", priority=100)
        job = crowd.claim()
        assert job is not None
        claims += 1
        if job.id == last:
            break
        crowd.wait(3600)
        crowd.end(job)
    assert claims == 200 * crowd.rules.priority_seconds // 3600 + 2


def test_a_team_that_has_used_much_is_claimed_from_however_many_others_wait(sessions: Sessions) -> None:
    crowd = Crowd(sessions)
    crowd.team("heavy", used=100 * 3600.0)
    patient = crowd.post("heavy", "patient")
    for other in ("b", "c", "d"):
        crowd.team(other)
        crowd.post(other, other)
    hours = 0
    while (job := crowd.claim()) is not None and job.id != patient:
        crowd.wait(3600)
        hours += 1
        crowd.end(job)
        crowd.post(job.name, job.name)
        assert hours < 48
    # 100 hours fade to what three teams that share a worker settle at, 4 / ln 2 / 3 hours each.
    assert 16 < hours < 28


def used(sessions: Sessions, crowd: Crowd, team: str) -> float:
    with session_scope(sessions) as session:
        table = standings(crowd.rules)
        rows = session.execute(table.select().where(table.c.team_id == crowd.ids[team])).one()
    return float(rows.used)


def test_used_time_halves_with_each_half_life(sessions: Sessions) -> None:
    crowd = Crowd(sessions)
    crowd.team("a", used=800)
    crowd.wait(2 * crowd.rules.half_life_seconds)
    assert used(sessions, crowd, "a") == pytest.approx(200, rel=1e-3)
    crowd.wait(1e9)
    assert used(sessions, crowd, "a") == pytest.approx(0, abs=1e-6)


def test_used_time_is_the_same_while_a_job_runs_when_it_ends_and_when_it_is_settled(sessions: Sessions) -> None:
    crowd = Crowd(sessions)
    crowd.team("a")
    crowd.post("a")
    job = crowd.claim()
    assert job is not None
    crowd.wait(500)
    assert used(sessions, crowd, "a") == pytest.approx(500, abs=0.01)
    crowd.end(job)
    assert used(sessions, crowd, "a") == pytest.approx(500, abs=0.01)
    with session_scope(sessions) as session:
        settle_turns(session, crowd.rules)
        assert session.scalars(select(TeamTurn)).all() == []
    assert used(sessions, crowd, "a") == pytest.approx(500, abs=0.01)
    with session_scope(sessions) as session:
        ended = session.get_one(Job, job.id)
        assert ended.worker_seconds == pytest.approx(500, abs=0.01)
        assert ended.claimed_at is None


def test_the_time_of_a_lost_worker_counts_until_its_lease_ran_out(sessions: Sessions) -> None:
    crowd = Crowd(sessions, ETERNAL)
    crowd.team("a")
    crowd.post("a")
    with session_scope(sessions) as session:
        assert claims.claim_next(session, "lost", 60) is not None
    crowd.wait(500)
    assert used(sessions, crowd, "a") == pytest.approx(60, abs=0.01)
    again = crowd.claim("other")
    assert again is not None
    assert again.worker_seconds == pytest.approx(60, abs=0.01)
    assert used(sessions, crowd, "a") == pytest.approx(60, abs=0.01)


def test_the_time_of_a_lost_worker_fades_from_the_end_of_its_lease_whether_or_not_that_was_noticed(
    sessions: Sessions,
) -> None:
    crowd = Crowd(sessions)
    crowd.team("a")
    crowd.post("a")
    with session_scope(sessions) as session:
        assert claims.claim_next(session, "lost", 60) is not None
    crowd.wait(60 + crowd.rules.half_life_seconds)
    assert used(sessions, crowd, "a") == pytest.approx(30, abs=0.01)
    assert crowd.claim("other") is not None
    assert used(sessions, crowd, "a") == pytest.approx(30, abs=0.01)


def test_a_job_given_back_keeps_its_place_and_a_retried_one_waits_anew(sessions: Sessions) -> None:
    crowd = Crowd(sessions)
    crowd.team("a")
    for name in ("first", "second"):
        crowd.post("a", name, waited=100)
    first, second = crowd.claim(), crowd.claim()
    assert first is not None
    assert second is not None
    crowd.post("a", "third", waited=50)
    crowd.end(second)
    with session_scope(sessions) as session:
        leases.release(session, first.id, first.fence, "the worker is told to stop")
        retry_job(session, second.id)
    assert crowd.claims() == ["first", "third", "second"]


@pytest.mark.parametrize(
    ("device", "taken"),
    [(Device.CPU, ["cpu", "any"]), (Device.GPU, ["gpu", "any"]), (Device.ANY, ["gpu", "cpu", "any"])],
)
def test_a_worker_takes_what_its_device_can_do(sessions: Sessions, device: Device, taken: list[str]) -> None:
    crowd = Crowd(sessions)
    crowd.team("a")
    for wanted in (Device.GPU, Device.CPU, Device.ANY):
        crowd.post("a", wanted.value, device=wanted)
    for name in taken:
        with session_scope(sessions) as session:
            assert claims.is_anything_claimable(session, Abilities(device))
        job = crowd.claim(device=device)
        assert job is not None
        assert job.name == name
    assert crowd.claim(device=device) is None
    with session_scope(sessions) as session:
        assert not claims.is_anything_claimable(session, Abilities(device))


@LAW
@given(limits=st.lists(st.none() | st.integers(0, 3), min_size=3, max_size=3))
def test_no_team_runs_more_than_it_may_however_many_claim_at_once(sessions: Sessions, limits: list[int | None]) -> None:
    empty(sessions)
    crowd = Crowd(sessions)
    for number, most in enumerate(limits):
        crowd.team(str(number), limits=TeamLimits(running=most))
        for _ in range(4):
            crowd.post(str(number))
    together = Barrier(6)

    def work(worker: int) -> list[str]:
        together.wait()
        return [job.id for job in iter(lambda: crowd.claim(str(worker)), None)]

    with ThreadPoolExecutor(6) as threads:
        claimed = [job_id for mine in threads.map(work, range(6)) for job_id in mine]
    assert len(set(claimed)) == len(claimed)
    assert crowd.running() == {str(number): 4 if most is None else most for number, most in enumerate(limits)}
    with session_scope(sessions) as session:
        assert not claims.is_anything_claimable(session)
        assert all(one.held_back for one in waiting_jobs(session))


def test_concurrent_claims_come_from_the_teams_in_turn(sessions: Sessions) -> None:
    crowd = Crowd(sessions)
    for team in ("a", "b", "c", "d"):
        crowd.team(team)
        for _ in range(4):
            crowd.post(team)
    together = Barrier(8)

    def work(worker: int) -> None:
        together.wait()
        assert crowd.claim(str(worker)) is not None

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert set(crowd.running().values()) == {2}


def test_a_job_whose_owner_changes_it_just_now_is_passed_over(sessions: Sessions) -> None:
    crowd = Crowd(sessions)
    crowd.team("a")
    first = crowd.post("a", "first", waited=9)
    crowd.post("a", "second")
    with session_scope(sessions) as owner:
        owner.get_one(Job, first, with_for_update=True)
        job = crowd.claim()
    assert job is not None
    assert job.name == "second"
