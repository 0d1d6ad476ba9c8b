"""The database rows of one claimed job, as its worker reads and writes them.

Each call is a transaction under the job's fence, so a worker that has lost the job changes nothing.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy.exc import NoResultFound
from sqlalchemy.orm import Session

from axformer.plan.trial import Trial
from axformer.wire.steps import Step
from store.errors import LeaseLostError
from store.repositories import claims, leases, trials
from store.repositories.line import Abilities
from store.session import Sessions, session_scope
from worker.base.context import is_compatible

P = ParamSpec("P")
Written = TypeVar("Written")


@dataclass(frozen=True)
class Ledger:
    """Reads and writes under one claim of one job."""

    sessions: Sessions
    job_id: str
    fence: int

    def write(
        self, act: Callable[Concatenate[Session, str, int, P], Written], *given: P.args, **named: P.kwargs
    ) -> Written:
        """Do what a function of :mod:`store.repositories.leases` or ``claims`` does to this job, in a transaction.

        Raises:
            LeaseLostError: another worker has the job, or it was deleted.
            StoreError: whatever else the function raises.
        """
        with self._scope() as session:
            return act(session, self.job_id, self.fence, *given, **named)

    def stored_trials(self, chunk: int) -> list[Trial]:
        """The trials that earlier workers stored, read ``chunk`` at a time."""
        with self._scope() as session:
            return list(trials.all_trials(session, self.job_id, chunk=chunk))

    def may_others_wait(self, able: Abilities) -> bool:
        """Whether any waiting job might go before this one, so that ``claims.yield_to_others`` is worth calling."""
        with self._scope() as session:
            return claims.may_others_go_first(session, self.job_id, able=able)

    def is_compatible(self) -> bool:
        """Whether the database has the schema that this worker knows."""
        with self._scope() as session:
            return is_compatible(session)

    @contextmanager
    def _scope(self) -> Iterator[Session]:
        try:
            with session_scope(self.sessions) as session:
                yield session
        except NoResultFound:
            raise LeaseLostError(f"job {self.job_id} was deleted") from None


_LEAST_SECONDS = 0.1
"""Between two writes, whatever the process says; the library reports far less often."""


class StepWriter:
    """Writes the steps of one job; those that come too fast are dropped."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger = ledger
        self._clock = clock
        self._at = float("-inf")

    def __call__(self, step: Step) -> None:
        """Write a step if it is due."""
        now = self._clock()
        if now - self._at >= _LEAST_SECONDS:
            self._ledger.write(leases.set_step, step)
            self._at = now
