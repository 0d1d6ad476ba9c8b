"""One claimed job in the database, as its worker reads and writes it: each call is a transaction of its own under the
job's fence, so a worker that has lost the job changes nothing."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy.exc import NoResultFound
from sqlalchemy.orm import Session

from axformer.plan.trial import Trial
from store.abilities import Abilities
from store.errors import LeaseLostError
from store.repositories import leases, slices, trials
from store.repositories.line import Rules
from store.session import Sessions, session_scope
from store.states import JobState
from store.tables.artifacts import Artifact
from worker.compatibility import is_compatible


@dataclass(frozen=True)
class Ledger:
    """Writes for one claim of one job. Each method may raise ``LeaseLostError``; the job is then another worker's."""

    sessions: Sessions
    job_id: str
    fence: int

    def renew(self, lease_seconds: float) -> JobState:
        """Renew the lease of the job for ``seconds`` from now, and return the job's state."""
        with self._scope() as session:
            return leases.heartbeat(session, self.job_id, self.fence, lease_seconds)

    def enter(self, state: JobState, reason: str | None = None) -> None:
        """Go on to a working state.

        Raises:
            CancelRequestedError: its owner wants it cancelled.
        """
        with self._scope() as session:
            leases.set_state(session, self.job_id, self.fence, state, reason)

    def note(self, type: str, data: Mapping[str, Any]) -> None:
        """Write an event."""
        with self._scope() as session:
            leases.add_event(session, self.job_id, self.fence, type, data)

    def stored_trials(self, chunk: int) -> list[Trial]:
        """The trials of all passes that earlier workers have stored, one pass after another, read ``chunk`` at a time."""
        with self._scope() as session:
            return list(trials.all_trials(session, self.job_id, chunk=chunk))

    def record(self, batch: Sequence[Trial], progress: Mapping[str, Any], pass_number: int) -> None:
        """Write trials of one pass, and how far the job is."""
        with self._scope() as session:
            leases.add_trials(session, self.job_id, self.fence, batch, progress, pass_number=pass_number)

    def succeed(self, report: Mapping[str, Any], artifacts: Sequence[Artifact], kept_pass: int) -> None:
        """End the job with its report, its files, and the pass whose trace is shown, all at once.

        Raises:
            CancelRequestedError: its owner wants it cancelled.
        """
        with self._scope() as session:
            leases.finish_succeeded(session, self.job_id, self.fence, report, artifacts, kept_pass=kept_pass)

    def fail(self, error: Mapping[str, Any]) -> None:
        """End the job with an error."""
        with self._scope() as session:
            leases.finish_failed(session, self.job_id, self.fence, error)

    def cancel(self) -> None:
        """End the job as its owner wanted."""
        with self._scope() as session:
            leases.finish_cancelled(session, self.job_id, self.fence)

    def give_back(self, reason: str) -> None:
        """Queue the job again, with its trace, or let it be paused or cancelled where its owner wants that."""
        with self._scope() as session:
            leases.release(session, self.job_id, self.fence, reason)

    def abandon(self, reason: str) -> JobState:
        """Say that the process which worked on the job is no more, and tell the job's state.

        It is claimed again where it has not ended, and the attempt counts.
        """
        with self._scope() as session:
            return leases.abandon(session, self.job_id, self.fence, reason).state

    def may_others_wait(self, able: Abilities) -> bool:
        """Whether there is a job that could go before this one, so that it makes sense to ask which does."""
        with self._scope() as session:
            return slices.may_others_go_first(session, self.job_id, able=able)

    def yield_to_others(self, reason: str, able: Abilities, rules: Rules) -> int | None:
        """Queue the job again if others wait that go first now, and tell the fence that it waits with.

        Raises:
            CancelRequestedError: its owner wants it cancelled.
        """
        with self._scope() as session:
            return slices.yield_to_others(session, self.job_id, self.fence, reason, able=able, rules=rules)

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
