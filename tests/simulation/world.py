"""The simulated world: a database, a broker that loses and doubles messages, and transactions that may go wrong.

Everything that happens is one step, chosen by a seeded generator. One thread plays all parts; what runs at the same time
is played by transactions that are left open while others go on. Who meets their locks is refused at once, as by a database
that is too slow to answer.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from sqlalchemy.exc import NoResultFound, OperationalError
from sqlalchemy.orm import Session

from store.errors import StoreError
from tests.simulation.database import SimulatedDatabase, Snapshot
from tests.simulation.invariants import Checker

LEASE_SECONDS = 60.0
KILLED_BEFORE_COMMIT = 0.03
ANSWER_LOST = 0.03
LEFT_OPEN = 0.06
"""How often a transaction meets each of these fates, while there is chaos."""

Statement = Callable[[Session], Any]
Answer = Callable[[Any], None]
"""Takes what a transaction gave, or the error of the store that ended it."""


class NoAnswerError(Exception):
    """The database did not answer; what was asked may have been done or not."""


class BlockedError(NoAnswerError):
    """It did not answer since another transaction holds a lock; nothing was done."""


@dataclass(frozen=True)
class Open:
    """A transaction that has done its work and is not committed."""

    session: Session
    result: Any
    answer: Answer


@dataclass
class World:
    """What all actors share."""

    database: SimulatedDatabase
    random: Random
    checker: Checker = field(default_factory=Checker)
    counts: Counter[str] = field(default_factory=Counter)
    open: list[Open] = field(default_factory=list)
    messages: int = 0
    """Messages that the broker has. They carry nothing, so their order is no matter: any of them may come next."""
    claims: list[tuple[str, int]] = field(default_factory=list)
    """Every job and fence that a worker was ever given."""
    is_chaos: bool = True
    is_changed: bool = True
    """Whether something was committed since ``seen``."""
    seen: Snapshot = field(init=False)

    def __post_init__(self) -> None:
        self.seen = self.database.look()

    def by_chance(self, share: float) -> bool:
        """True in this share of cases, while there is chaos."""
        return self.is_chaos and self.random.random() < share

    def transact(self, statement: Statement, answer: Answer) -> None:
        """Run a statement in a transaction, whose fate is drawn, and tell the asker what came of it."""
        self.database.set_clock()
        session = self.database.sessions()
        try:
            result = statement(session)
            session.flush()
        except (StoreError, NoResultFound) as error:
            session.close()
            answer(error)
            return
        except OperationalError as error:
            session.close()
            self.counts["blocked"] += 1
            if not self.open:
                raise RuntimeError("nothing is open that could hold a lock") from error
            answer(BlockedError())
            return
        if self.by_chance(KILLED_BEFORE_COMMIT):
            session.close()
            self.counts["rolled back"] += 1
            answer(NoAnswerError())
        elif self.by_chance(LEFT_OPEN):
            self.counts["left open"] += 1
            self.open.append(Open(session, result, answer))
        else:
            self._commit(Open(session, result, answer))

    def settle(self) -> None:
        """End any one open transaction."""
        chosen = self.open.pop(self.random.randrange(len(self.open)))
        if self.by_chance(0.5):
            chosen.session.close()
            chosen.answer(NoAnswerError())
        else:
            self._commit(chosen)

    def send(self) -> None:
        """Give a message to the broker, which may lose it or deliver it twice."""
        if self.by_chance(0.2):
            self.counts["messages lost"] += 1
        elif self.by_chance(0.2):
            self.counts["messages doubled"] += 1
            self.messages += 2
        else:
            self.messages += 1

    def check(self) -> None:
        """Make sure that everything is as it must be, if anything was committed since the last look."""
        if self.is_changed:
            self.counts["checks"] += 1
            self.seen = self.database.look()
            self.is_changed = False
            self.checker.check(self.seen)

    def _commit(self, chosen: Open) -> None:
        chosen.session.commit()
        self.is_changed = True
        chosen.session.close()
        if self.by_chance(ANSWER_LOST):
            self.counts["answers lost"] += 1
            chosen.answer(NoAnswerError())
        else:
            chosen.answer(chosen.result)
