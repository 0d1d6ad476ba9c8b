"""The database rows of one claimed job, as its worker reads and writes them.

Each call is a transaction under the job's fence, so a worker that has lost the job changes nothing.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy.exc import NoResultFound
from sqlalchemy.orm import Session

from axformer.plan.trial import Trial
from axformer.wire.steps import Step
from store.errors import LeaseLostError
from store.repositories import claims, leases, trials
from store.repositories.line import Abilities, Rules
from store.session import Sessions, session_scope
from store.states import JobState
from store.tables.files import Artifact
from worker.base.context import is_compatible


@dataclass(frozen=True)
class Ledger:
    """Writes under one claim of one job. Every method may raise ``LeaseLostError``: another worker has the job."""

    sessions: Sessions
    job_id: str
    fence: int

    def renew(self, lease_seconds: float) -> JobState:
        """Renew the lease of the job for ``seconds`` from now, and return the job's state."""
        with self._scope() as session:
            return leases.heartbeat(session, self.job_id, self.fence, lease_seconds)

    def enter(self, state: JobState, reason: str | None = None) -> None:
        """Move the job to a working state.

        Raises:
            CancelRequestedError: the owner has cancelled it.
        """
        with self._scope() as session:
            leases.set_state(session, self.job_id, self.fence, state, reason)

    def note(self, type: str, data: Mapping[str, Any]) -> None:
        """Write an event."""
        with self._scope() as session:
            leases.add_event(session, self.job_id, self.fence, type, data)

    def stored_trials(self, chunk: int) -> list[Trial]:
        """The trials that earlier workers stored, read ``chunk`` at a time."""
        with self._scope() as session:
            return list(trials.all_trials(session, self.job_id, chunk=chunk))

    def record(self, batch: Sequence[Trial], progress: Mapping[str, Any]) -> None:
        """Write trials and the progress of the job."""
        with self._scope() as session:
            leases.add_trials(session, self.job_id, self.fence, batch, progress)

    def tell(self, step: Step) -> None:
        """Write what the job's process does between two trials or after the last one."""
        with self._scope() as session:
            leases.set_step(session, self.job_id, self.fence, step)

    def succeed(self, report: Mapping[str, Any], artifacts: Sequence[Artifact]) -> None:
        """End the job with its report and its files, in one transaction.

        Raises:
            CancelRequestedError: the owner has cancelled it.
        """
        with self._scope() as session:
            leases.finish_succeeded(session, self.job_id, self.fence, report, artifacts)

    def fail(self, error: Mapping[str, Any]) -> None:
        """End the job with an error."""
        with self._scope() as session:
            leases.finish_failed(session, self.job_id, self.fence, error)

    def cancel(self) -> None:
        """End the job as cancelled."""
        with self._scope() as session:
            leases.finish_cancelled(session, self.job_id, self.fence)

    def give_back(self, reason: str) -> None:
        """Queue the job again with its trace, or pause or cancel it if its owner asked for that."""
        with self._scope() as session:
            leases.release(session, self.job_id, self.fence, reason)

    def abandon(self, reason: str) -> JobState:
        """Record that the process of the job has died, and return the job's state.

        If the job has not ended, it can be claimed again; the attempt counts.
        """
        with self._scope() as session:
            return leases.abandon(session, self.job_id, self.fence, reason).state

    def may_others_wait(self, able: Abilities) -> bool:
        """Whether any waiting job might go before this one, so that :meth:`yield_to_others` is worth calling."""
        with self._scope() as session:
            return claims.may_others_go_first(session, self.job_id, able=able)

    def yield_to_others(self, reason: str, able: Abilities, rules: Rules) -> int | None:
        """Queue the job again if another goes first, and return the fence that it waits with; None if it continues.

        Raises:
            CancelRequestedError: the owner has cancelled it.
        """
        with self._scope() as session:
            return claims.yield_to_others(session, self.job_id, self.fence, reason, able=able, rules=rules)

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
            self._ledger.tell(step)
            self._at = now
