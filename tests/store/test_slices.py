"""A job whose slice is over gives way to whoever is then first in the line, and to nobody else."""

import pytest

from axformer.wire.devices import Device
from store.repositories.claims import yield_to_others
from store.repositories.line import ALL, Abilities
from store.repositories.teams import TeamLimits
from store.session import Sessions, session_scope
from store.tables.jobs import Job
from tests.store.crowd import Crowd


def long_job(crowd: Crowd, team: str = "a", **limits: int) -> Job:
    """A job that has run for a day."""
    crowd.team(team, limits=TeamLimits(**limits))
    crowd.post(team, "long")
    job = crowd.claim("process")
    assert job is not None
    crowd.wait(24 * 3600)
    return job


def gives_way(crowd: Crowd, job: Job, able: Abilities = ALL) -> bool:
    with session_scope(crowd.sessions) as session:
        return yield_to_others(session, job.id, job.fence, "slice over", able=able, rules=crowd.rules) is not None


@pytest.mark.parametrize("limits", [{}, {"running": 1}], ids=["", "at its team's limit"])
def test_it_gives_way_to_its_own_team(sessions: Sessions, limits: dict[str, int]) -> None:
    crowd = Crowd(sessions)
    job = long_job(crowd, **limits)
    crowd.post("a", "short")
    assert gives_way(crowd, job)
    assert crowd.claims()[0] == "short"


def test_it_gives_way_to_a_team_that_has_used_less(sessions: Sessions) -> None:
    crowd = Crowd(sessions)
    job = long_job(crowd)
    crowd.team("b")
    crowd.post("b", "short")
    assert gives_way(crowd, job)
    assert crowd.claims() == ["short", "long"]


def test_it_does_not_give_way_to_a_team_that_has_used_more(sessions: Sessions) -> None:
    crowd = Crowd(sessions)
    job = long_job(crowd)
    crowd.team("b", used=1e9)
    crowd.post("b", "short")
    assert not gives_way(crowd, job)


def test_it_does_not_give_way_to_a_job_that_its_worker_cannot_take(sessions: Sessions) -> None:
    crowd = Crowd(sessions)
    job = long_job(crowd)
    crowd.team("b")
    crowd.post("b", "short", device=Device.GPU)
    assert not gives_way(crowd, job, Abilities(Device.CPU))
    crowd.post("b", "shorter", device=Device.CPU)
    assert gives_way(crowd, job, Abilities(Device.CPU))
