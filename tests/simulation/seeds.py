"""Many runs on one database, in whatever process."""

from collections import Counter

from tests.simulation.database import simulated_database
from tests.simulation.invariants import BrokenInvariantError
from tests.simulation.run import simulate


def run_seeds(server_url: str, name: str, seeds: range) -> tuple[Counter[str], list[str]]:
    """Run these seeds on a database of their own: how often what happened, and what was broken."""
    counts: Counter[str] = Counter()
    broken = []
    with simulated_database(server_url, name) as database:
        for seed in seeds:
            try:
                counts += simulate(database, seed)
            except BrokenInvariantError as error:
                broken.append(str(error))
    return counts, broken
