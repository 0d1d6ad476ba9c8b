"""Unlike cards in one queue: ``python -m tests.simulation.cards`` prints how long small and big jobs wait.

The rule of the queue (``docs/queue.md``) in plain Python, with cards, jobs and time that are made up. What a job needs is not
known before a worker has looked at its files, as in the service; ``tests/store/test_memory.py`` holds the store to the rule.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import mean, quantiles

from axformer.wire.devices import Device, can_take
from store.repositories.line import LEFT, SMALLER
from store.settings import HALF_LIFE_SECONDS

CARDS = (80, 16, 16)
"""GB of each worker's card."""
TEAMS = 3
STEP, SLICE, LOOK = 5, 120, 10
"""Seconds: between two looks of an idle worker, of a time slice, and for fetching and loading."""
FADES = 0.5 ** (STEP / HALF_LIFE_SECONDS)
"""What is left of a team's use after a step."""


@dataclass(eq=False)
class Asked:
    """A job; times are in seconds from the beginning."""

    posted: float
    needs: int
    """GB."""
    work: float
    team: int
    left: float = 0.0
    found: dict[str, int] | None = None
    """What a look at its files has found it to need."""
    waits_since: float = 0.0
    queued: float = 0.0
    ended: float | None = None
    has_failed: bool = False

    def __post_init__(self) -> None:
        self.left, self.waits_since, self.queued = self.work, self.posted, self.posted

    @property
    def is_big(self) -> bool:
        """Whether only the largest card can run it."""
        return self.needs > min(CARDS)

    @property
    def waited(self) -> float:
        """Seconds between its posting and its end in which it did not run."""
        assert self.ended is not None
        return self.ended - self.posted - self.work


@dataclass(eq=False)
class Card:
    """A worker and its card."""

    memory: int
    """GB."""
    job: Asked | None = None
    since: float = 0.0


@dataclass(frozen=True)
class Rule:
    """What of the rule is in force."""

    knows: bool = True
    """Whether a worker takes only jobs that its card can hold; else it fails what it cannot."""
    leaves: bool = True
    """Whether it leaves jobs to smaller idle ones for a while."""


@dataclass
class Site:
    """The cards, the jobs that wait, and what each team has used."""

    rule: Rule
    random: Random
    cards: list[Card] = field(default_factory=lambda: [Card(memory) for memory in CARDS])
    waiting: list[Asked] = field(default_factory=list)
    used: list[float] = field(default_factory=lambda: [0.0] * TEAMS)
    now: float = 0.0

    def run(self, coming: Sequence[Asked]) -> None:
        """Let all jobs come and end."""
        line = list(reversed(coming))
        while line or self.waiting or any(card.job for card in self.cards):
            while line and line[-1].posted <= self.now:
                self.waiting.append(line.pop())
            self.used = [seconds * FADES for seconds in self.used]
            for card in self.cards:
                if card.job is not None:
                    self._go_on(card, card.job)
            if self.waiting:
                for card in self.random.sample(self.cards, len(self.cards)):
                    self._look(card)
            self.now += STEP

    def _look(self, card: Card) -> None:
        if card.job is None and (first := self.first(card)) is not None:
            self.waiting.remove(first)
            card.job, card.since = first, self.now

    def first(self, card: Card) -> Asked | None:
        """The job that this card's worker takes next."""
        running = [sum(one.job is not None and one.job.team == team for one in self.cards) for team in range(TEAMS)]
        able = (one for one in self.waiting if self._may_take(card, one))
        return min(able, key=lambda one: (running[one.team], self.used[one.team], one.waits_since), default=None)

    def _may_take(self, card: Card, job: Asked) -> bool:
        if not self.rule.knows:
            return True
        smaller = [one for one in self.cards if one.job is None and one.memory <= card.memory * SMALLER]
        is_fresh = self.rule.leaves and self.now - job.queued < LEFT.total_seconds()
        return _fits(card, job) and not (is_fresh and any(_fits(one, job) for one in smaller))

    def _go_on(self, card: Card, job: Asked) -> None:
        self.used[job.team] += STEP
        if self.now - card.since < LOOK:
            return
        if job.needs > card.memory:
            self._turn_away(card, job)
            return
        job.left -= STEP
        if job.left <= 0:
            job.ended, card.job = self.now, None
        elif self.now - card.since >= SLICE and self.waiting:
            self._yield(card, job)

    def _yield(self, card: Card, job: Asked) -> None:
        """Queue a job whose slice is over, unless it would be the next."""
        before = job.waits_since, job.queued
        job.waits_since = job.queued = self.now
        self.waiting.append(job)
        card.job = None
        if self.first(card) in (None, job):
            self.waiting.remove(job)
            card.job, (job.waits_since, job.queued) = job, before

    def _turn_away(self, card: Card, job: Asked) -> None:
        card.job = None
        if self.rule.knows:
            job.found, job.queued = {"gpu": job.needs}, self.now
            self.waiting.append(job)
        else:
            job.ended, job.has_failed = self.now, True


def _fits(card: Card, job: Asked) -> bool:
    return can_take(Device.GPU, card.memory, Device.ANY, job.found)


def jobs_that_come(random: Random, hours: float, small_cards: float, big_cards: float) -> list[Asked]:
    """Jobs of some hours: small ones of ten minutes on average and big ones of half an hour, at random times.

    Args:
        small_cards: how many cards the small jobs keep busy on average; ``big_cards`` the same of the big ones.
    """
    coming = []
    for busy, least, most, length in ((small_cards, 2, 16, 600.0), (big_cards, 24, 80, 1800.0)):
        at = random.expovariate(busy / length)
        while at < hours * 3600:
            work = max(STEP, random.expovariate(1 / length))
            coming.append(Asked(at, random.randint(least, most), work, random.randrange(TEAMS)))
            at += random.expovariate(busy / length)
    return sorted(coming, key=lambda one: one.posted)


RULES = {
    "no worker knows its memory": Rule(knows=False),
    "each takes what it can hold": Rule(leaves=False),
    "and leaves jobs to smaller idle ones": Rule(),
}
LOADS = {"light": (0.4, 0.3), "busy": (1.2, 0.5), "full": (1.9, 0.6)}
"""Cards that small and big jobs keep busy on average, of three."""


def simulate(rule: Rule, small_cards: float, big_cards: float, hours: float, seed: int = 1) -> list[Asked]:
    """All jobs of some hours under a rule, ended."""
    coming = jobs_that_come(Random(seed), hours, small_cards, big_cards)
    Site(rule, Random(seed)).run(coming)
    return coming


def figures(done: Sequence[Asked]) -> str:
    """Cells of a table: share of big jobs that failed, and minutes waited, mean and 90th percentile, small and big."""
    small, big = ([one for one in done if one.is_big is is_big] for is_big in (False, True))
    cells = [f"{mean(one.has_failed for one in big):.0%}"]
    for some in (small, [one for one in big if not one.has_failed]):
        waited = [one.waited / 60 for one in some]
        cells += [f"{mean(waited):.1f}", f"{quantiles(waited, n=10)[-1]:.1f}"]
    return " | ".join(cells)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.cards")
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    print("| load | rule | big failed | small: mean, min | 90 % | big: mean, min | 90 % |")  # noqa: T201 - this is
    print("|---|---|---|---|---|---|---|")  # noqa: T201 - what the command is for
    for load, busy in LOADS.items():
        for name, rule in RULES.items():
            done = [one for seed in range(given.seeds) for one in simulate(rule, *busy, given.hours, seed)]
            print(f"| {load}, {len(done)} jobs | {name} | {figures(done)} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
