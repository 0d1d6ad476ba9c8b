"""One simulated run: chaos for a while, then peace until every job has ended."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from uuid import UUID

from kombu.exceptions import OperationalError as BrokerError
from sqlalchemy.exc import OperationalError

from store import ids
from store.repositories.teams import create_team
from store.session import session_scope
from store.states import TERMINAL
from tests.simulation.clients import Clients
from tests.simulation.database import SimulatedDatabase
from tests.simulation.ghosts import haunt
from tests.simulation.invariants import BrokenInvariantError
from tests.simulation.janitor import Janitor
from tests.simulation.workers import Worker
from tests.simulation.world import LEASE_SECONDS, World
from worker.main.announcer import announce

CHAOS_STEPS = 80
PEACE_ROUNDS = 400
"""Within these every job must end: it has at most six trials, and all workers go on."""
TEAMS = 3
MOST_JOBS = 4
MOST_WORKERS = 4
BROKER_IS_AWAY = 0.1
BEATS = 0.2
"""Share of a worker's doings that are heartbeats."""
SWEEPS = 0.2
"""Share of the rounds of peace in which a janitor comes by."""
_TICK = 0.001


def simulate(database: SimulatedDatabase, seed: int) -> Counter[str]:
    """Run a world to its end.

    Returns:
        How often what happened.

    Raises:
        BrokenInvariantError: something happened that never may; the message names the seed.
    """
    random = Random(seed)
    world = World(database, random)
    with _ids_by(random):
        database.clear()
        with session_scope(database.sessions) as session:
            teams = [create_team(session, f"team {number}").id for number in range(TEAMS)]
        clients = Clients(world, teams, wanted=random.randint(1, MOST_JOBS))
        workers = [Worker(world, f"worker {number}") for number in range(random.randint(2, MOST_WORKERS))]
        janitor = Janitor(world)
        try:
            _chaos(world, clients, workers, janitor)
            _peace(world, clients, workers, janitor)
        except (AssertionError, Exception) as error:
            raise BrokenInvariantError(f"seed {seed}: {type(error).__name__}: {error}") from error
        finally:
            for one in world.open:
                one.session.close()
    world.counts["runs"] += 1
    return world.counts


def _chaos(world: World, clients: Clients, workers: list[Worker], janitor: Janitor) -> None:
    happenings: list[tuple[int, Callable[[], None]]] = [
        (6, clients.act),
        (12, lambda: _deliver(world, workers)),
        (60, lambda: _work(world, workers)),
        (6, lambda: _announce(world, workers)),
        (4, lambda: world.database.advance(world.random.uniform(0.1, LEASE_SECONDS / 3))),
        (2, lambda: _stop_past_lease(world, workers)),
        (4, lambda: _let_go_on(world, workers)),
        (2, lambda: _kill(world, workers)),
        (6, lambda: haunt(world)),
        (6, lambda: world.settle() if world.open else None),
        (1, lambda: _lose_all_messages(world)),
        (10, janitor.sweep),
    ]
    weights, acts = zip(*happenings, strict=True)
    for _ in range(CHAOS_STEPS):
        world.database.advance(_TICK)
        world.random.choices(acts, weights)[0]()
        world.check()


def _peace(world: World, clients: Clients, workers: list[Worker], janitor: Janitor) -> None:
    world.is_chaos = False
    while world.open:
        world.settle()
    clients.finish()
    for worker in workers:
        worker.is_stopped = False
    for _ in range(PEACE_ROUNDS):
        world.check()
        snapshot = world.seen
        if all(job["state"] in TERMINAL for job in snapshot.jobs.values()):
            break
        clients.resume_all()
        if world.random.random() < SWEEPS:
            janitor.sweep()
        _announce(world, workers)
        _deliver(world, workers)
        for worker in workers:
            if worker.job is not None:
                worker.beat()
            if worker.next is not None:
                worker.step()
        world.database.advance(LEASE_SECONDS / 3)
    else:
        raise BrokenInvariantError(
            "jobs do not end although workers live: " + str([j["state"] for j in snapshot.jobs.values()])
        )
    for job in snapshot.jobs.values():
        world.counts[job["state"]] += 1
        if (job["error"] or {}).get("code") == "worker_lost":
            world.counts["worker lost"] += 1


def _deliver(world: World, workers: list[Worker]) -> None:
    idle = [worker for worker in workers if worker.is_idle]
    if world.messages and idle:
        world.messages -= 1
        world.random.choice(idle).claim()


def _work(world: World, workers: list[Worker]) -> None:
    busy = [worker for worker in workers if worker.job and not worker.is_stopped]
    if not busy:
        return
    worker = world.random.choice(busy)
    if worker.is_waiting or world.random.random() < BEATS:
        worker.beat()
    else:
        worker.step()


def _announce(world: World, workers: list[Worker]) -> None:
    if not any(worker.is_idle for worker in workers):
        return

    def send() -> None:
        if world.by_chance(BROKER_IS_AWAY):
            raise BrokerError("the broker is away")
        world.send()

    try:
        world.database.set_clock()
        announce(world.database.sessions, send)
    except BrokerError:
        world.counts["broker away"] += 1
    except OperationalError:
        world.counts["blocked"] += 1


def _kill(world: World, workers: list[Worker]) -> None:
    """``kill -9`` of a worker, and perhaps a while in which no other takes its place."""
    busy = [worker for worker in workers if worker.job or worker.is_waiting]
    if busy:
        world.counts["kills"] += 1
        world.random.choice(busy).kill()
        world.database.advance(world.random.choice([0, LEASE_SECONDS + 1]))


def _stop_past_lease(world: World, workers: list[Worker]) -> None:
    """``SIGSTOP`` of a worker for longer than its lease."""
    busy = [worker for worker in workers if worker.job and not worker.is_stopped]
    if busy:
        world.counts["stops"] += 1
        world.random.choice(busy).is_stopped = True
        world.database.advance(LEASE_SECONDS + 1)


def _let_go_on(world: World, workers: list[Worker]) -> None:
    """``SIGCONT``: a worker that was stopped goes on as if no time had passed."""
    for worker in workers:
        if worker.is_stopped:
            worker.is_stopped = False
            if worker.next is not None and not worker.is_waiting:
                worker.step()
            return


def _lose_all_messages(world: World) -> None:
    world.counts["messages lost"] += world.messages
    world.messages = 0


@contextmanager
def _ids_by(random: Random) -> Iterator[None]:
    """Ids that grow and that the seed determines; else ties would be broken in another way in each run of a seed."""
    kept, count = ids.uuid7, iter(range(2**62))
    ids.uuid7 = lambda: UUID(int=next(count) << 64 | random.getrandbits(64))
    try:
        yield
    finally:
        ids.uuid7 = kept
