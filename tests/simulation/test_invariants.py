"""The checker must see what it is there to see."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.simulation.database import BEGIN, Row, Snapshot
from tests.simulation.invariants import BrokenInvariantError, Checker, loss_of
from tests.simulation.order import waiting_jobs, wrong_claim

SALT = 7


def job(**changes: Any) -> Row:
    plain: Row = {
        "id": "job_1",
        "name": "job",
        "state": "running",
        "attempt": 1,
        "max_attempts": 3,
        "fence": 1,
        "worker": "worker",
        "lease_until": BEGIN,
        "event_count": 4,
        "priority": 0,
        "team_id": "a",
        "waits_since": BEGIN,
        "claimed_at": BEGIN,
        "created_at": BEGIN,
        "config": {},
        "labels": {"salt": str(SALT), "trials": "3"},
    }
    return plain | changes


def snapshot(*jobs: Row) -> Snapshot:
    types = ["job.created", "job.fetching", "job.validating", "job.running"]
    events = [{"seq": seq, "type": type, "data": {"attempt": 1}} for seq, type in enumerate(types, start=1)]
    trials = [{"seq": seq, "loss": loss_of(SALT, seq)} for seq in range(2)]
    return Snapshot(BEGIN, {one["id"]: one for one in jobs}, {"job_1": events}, {"job_1": trials}, {})


def double_trial(seen: Snapshot) -> None:
    seen.trials["job_1"].append(seen.trials["job_1"][-1])  # type: ignore[attr-defined]


def lose_first_trial(seen: Snapshot) -> None:
    del seen.trials["job_1"][0]  # type: ignore[attr-defined]


def take_trial_of_another(seen: Snapshot) -> None:
    seen.trials["job_1"][0]["loss"] = loss_of(SALT + 1, 0)


def skip_event(seen: Snapshot) -> None:
    seen.events["job_1"][3]["seq"] = 5


def skip_state(seen: Snapshot) -> None:
    seen.events["job_1"][2]["type"] = "job.packaging"


def set_field(name: str, value: Any) -> Callable[[Snapshot], None]:
    def change(seen: Snapshot) -> None:
        seen.jobs["job_1"][name] = value

    return change


def test_a_job_on_its_way_is_as_it_must_be() -> None:
    Checker().check(snapshot(job()))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (double_trial, "gap in its trace"),
        (lose_first_trial, "gap in its trace"),
        (take_trial_of_another, "not its own"),
        (skip_event, "gap in its events"),
        (skip_state, "went from fetching to packaging"),
        (set_field("attempt", 2), "counts 2 attempts"),
        (set_field("state", "queued"), "its events say running"),
        (set_field("worker", None), "not both"),
    ],
)
def test_what_must_not_be_is_seen(spoil: Callable[[Snapshot], None], words: str) -> None:
    seen = snapshot(job())
    spoil(seen)
    with pytest.raises(BrokenInvariantError, match=words):
        Checker().check(seen)


@pytest.mark.parametrize(("name", "value"), [("fence", 0), ("trials", 1)])
def test_what_was_there_must_not_go_back(name: str, value: int) -> None:
    checker, later = Checker(), snapshot(job())
    checker.check(snapshot(job()))
    if name == "trials":
        del later.trials["job_1"][value:]  # type: ignore[attr-defined]
    else:
        later.jobs["job_1"][name] = value
    with pytest.raises(BrokenInvariantError):
        checker.check(later)


WAITING = {"state": "queued", "worker": None, "lease_until": None, "attempt": 0}


def waits(name: str, **changes: Any) -> Row:
    return job(id=name, name=name, **(WAITING | changes))


def line(*jobs: Row, used: float = 0.0) -> Snapshot:
    teams = {"a": {"used_seconds": 0.0, "used_as_of": BEGIN}, "b": {"used_seconds": used, "used_as_of": BEGIN}}
    return replace(snapshot(*jobs), teams=teams)


@pytest.mark.parametrize(
    ("first", "second", "used"),
    [
        (waits("job_2", priority=5), waits("job_1"), 0.0),
        (waits("job_2"), waits("job_1", waits_since=BEGIN + timedelta(seconds=1)), 0.0),
        (waits("job_2"), waits("job_1", team_id="b"), 1.0),
        (waits("job_2", team_id="b"), waits("job_1", waits_since=BEGIN - timedelta(days=1)), -1.0),
    ],
    ids=["the more urgent", "the older", "the team that has used less", "that team, though its job is younger"],
)
def test_the_order_is_told_from_any_other(first: Row, second: Row, used: float) -> None:
    seen = line(first, second, used=used)
    assert waiting_jobs(seen) == [first, second]
    assert wrong_claim(seen, [first, second], first, [second]) is None
    assert wrong_claim(seen, [first, second], second, [first]) is not None


def test_a_team_with_a_running_job_is_behind_one_without() -> None:
    running, same, other = job(id="job_0", lease_until=BEGIN), waits("job_1"), waits("job_2", team_id="b")
    seen = line(running, same, other, used=1e6)
    assert wrong_claim(seen, [same, other], other, [same]) is None
    assert wrong_claim(seen, [same, other], same, [other]) is not None


def test_what_a_claim_has_ended_does_not_count_as_going_first() -> None:
    ended, first, other = waits("job_1"), waits("job_2"), waits("job_3", team_id="b")
    seen = line(ended, first, other, used=1.0)
    assert wrong_claim(seen, [first, other], first, [other]) is None
    assert wrong_claim(seen, [ended, first, other], first, [other]) is not None
