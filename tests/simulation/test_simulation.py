"""The short version; ``python -m tests.simulation`` is the long one."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.simulation.database import SimulatedDatabase, simulated_database
from tests.simulation.run import simulate

FEW, MANY = 3, 25


@pytest.fixture(scope="module")
def simulated(postgres_url: str) -> Iterator[SimulatedDatabase]:
    with simulated_database(postgres_url, "axformer_test_simulation") as database:
        yield database


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_in_a_few_runs(simulated: SimulatedDatabase) -> None:
    assert sum((simulate(simulated, seed) for seed in range(FEW)), Counter[str]())["kills"] > 0


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_whatever_is_killed(simulated: SimulatedDatabase) -> None:
    counts: Counter[str] = Counter()
    for seed in range(MANY):
        counts += simulate(simulated, seed)

    happened = {
        "taken over",
        "writes refused",
        "kills",
        "messages lost",
        "messages doubled",
        "left open",
        "rolled back",
        "pauses",
        "yielded",
        "jobs removed by age",
        "artifacts removed by age",
    }
    assert happened <= set(counts), "what the simulator is made for did not happen"
    assert {"succeeded", "failed", "cancelled"} <= set(counts)


def test_a_seed_tells_the_whole_run(simulated: SimulatedDatabase) -> None:
    assert simulate(simulated, 7) == simulate(simulated, 7)
