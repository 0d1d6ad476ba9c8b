"""Simulated workers. They do on the store what ``worker.job.runner`` does, one transaction a step, and trust nothing but it."""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.exc import NoResultFound
from sqlalchemy.orm import Session

from axformer.plan.trial import Phase, Trial, Verdict
from store.errors import CancelRequestedError, LeaseLostError, PauseRequestedError
from store.repositories import claims, leases, trials
from store.repositories.claims import yield_to_others
from store.states import JobState
from store.tables.files import Artifact
from store.tables.jobs import Job
from tests.simulation.database import Row, Snapshot
from tests.simulation.invariants import BrokenInvariantError, loss_of, trace_of
from tests.simulation.janitor import check_not_in_the_way
from tests.simulation.order import waiting_jobs, wrong_claim
from tests.simulation.world import LEASE_SECONDS, Answer, NoAnswerError, Statement, World

CHUNK = 1000
MOST_IN_BATCH = 3
FAILS = 0.02
STOPS = 0.03
SLICE_OVER = 0.2
SAYS_IT_AGAIN = 0.5
"""How often a batch whose fate is unknown is sent again; else the worker leaves the job alone."""
_ERROR = {"code": "invalid_data", "message": "no rows", "retryable": False}

Steps = Generator[Statement, Any, None]


def trial_of(salt: int, seq: int) -> Trial:
    """The one trial that a job has of this number."""
    loss = loss_of(salt, seq)
    return Trial(
        seq=seq,
        phase=Phase.BLOCK if seq else Phase.BASE,
        element=f"layer.{seq}.ffn" if seq else None,
        loss=loss,
        loss_is_bound=False,
        helped=seq if seq else None,
        samples=10,
        total=10,
        min_loss=loss,
        verdict=Verdict.REJECT if seq else Verdict.BASE,
        precision="float32",
        parameters=seq,
        seconds=0.0,
    )


@dataclass
class Worker:
    """One worker process. What it knows of its job is lost when it is killed."""

    world: World
    name: str
    job: Job | None = None
    steps: Steps | None = None
    next: Statement | None = None
    is_waiting: bool = False
    """For the answer of a transaction that is left open."""
    is_stopped: bool = False
    """By SIGSTOP: it does nothing, and knows not that time goes by."""
    is_told_to_cancel: bool = False
    is_told_to_pause: bool = False
    life: int = 0
    """Grows when the process is killed; answers to the one before reach nobody."""

    @property
    def is_idle(self) -> bool:
        """Whether it would take a message."""
        return not (self.job or self.is_waiting or self.is_stopped)

    def kill(self) -> None:
        """``kill -9``; another process takes its place."""
        self.life += 1
        self.is_waiting = self.is_stopped = False
        self._drop()

    def claim(self) -> None:
        """Take the next job, as on every message."""
        before = replace(self.world.seen, now=self.world.database.now)
        self.world.counts["looks"] += 1
        free = self.world.database.free_jobs() if self.world.open else set(before.jobs)

        self.is_waiting = True

        def claim(session: Session) -> Job | None:
            job = claims.claim_next(session, self.name, LEASE_SECONDS)
            if job is not None:
                self._check_claim(before, free, job)
            return job

        def answer(result: Any) -> None:
            self.is_waiting = False
            check_not_in_the_way(self.world, result)
            if isinstance(result, Job):
                self.world.claims.append((result.id, result.fence))
                self.job, self.steps = result, self._carry_out(result)
                self.next = next(self.steps)

        self._ask(claim, answer)

    def beat(self) -> None:
        """Renew the lease, from a thread of its own, so that it may happen at any time."""
        job = self.job
        assert job is not None

        def answer(result: Any) -> None:
            if isinstance(result, LeaseLostError):
                self.world.counts["heartbeats refused"] += 1
                self._drop()
            elif result is JobState.CANCELLING:
                self.is_told_to_cancel = True
            elif result is JobState.PAUSING:
                self.is_told_to_pause = True

        self._ask(lambda session: leases.heartbeat(session, job.id, job.fence, LEASE_SECONDS), answer, held=job)

    def step(self) -> None:
        """The next thing that its job asks for."""
        assert self.next is not None
        self.is_waiting = True

        def answer(result: Any) -> None:
            self.is_waiting = False
            self._go_on(result)

        self._ask(self.next, answer, held=None if isinstance(self.next, _Read) else self.job)

    def _ask(self, statement: Statement, answer: Answer, held: Job | None = None) -> None:
        life = self.life

        def checked(session: Session) -> Any:
            result = statement(session)
            if held is not None:
                _check_fence(session, held)
            return result

        def answered(result: Any) -> None:
            if life == self.life:
                answer(result)

        self.world.transact(checked, answered)

    def _go_on(self, result: Any) -> None:
        if self.steps is None:  # its lease was found to be lost meanwhile
            return
        if isinstance(result, NoAnswerError):
            if self.world.random.random() < SAYS_IT_AGAIN and isinstance(self.next, _Batch):
                self.world.counts["batches sent again"] += 1
            else:
                self._drop()
            return
        try:
            is_error = isinstance(result, Exception)
            self.next = self.steps.throw(result) if is_error else self.steps.send(result)
        except StopIteration:
            self._drop()
        except (LeaseLostError, NoResultFound):
            self.world.counts["writes refused"] += 1
            self._drop()

    def _drop(self) -> None:
        self.job = self.steps = self.next = None
        self.is_told_to_cancel = self.is_told_to_pause = False

    def _carry_out(self, job: Job) -> Steps:
        """The steps of a job, as ``worker.job.runner`` takes them."""
        held = (job.id, job.fence)
        try:
            yield lambda session: leases.add_event(session, *held, "job.fetched", {})
            yield lambda session: leases.set_state(session, *held, JobState.VALIDATING)
            yield lambda session: leases.set_state(session, *held, JobState.RUNNING)
            if (yield from self._search(job)):
                return
            yield lambda session: leases.set_state(session, *held, JobState.PACKAGING)
            yield lambda session: leases.finish_succeeded(session, *held, {}, [_file_of(job)])
        except CancelRequestedError:
            yield lambda session: leases.finish_cancelled(session, *held)
        except PauseRequestedError:
            yield lambda session: leases.release(session, *held, "its owner wants it paused")

    def _search(self, job: Job) -> Generator[Statement, Any, bool]:
        """The trials from where the trace ends; true where the job ends, or goes back to the queue, on the way."""
        held, (salt, total) = (job.id, job.fence), trace_of(job.labels)
        done = len((yield _Read(lambda session: list(trials.all_trials(session, job.id, chunk=CHUNK)))))
        self.world.counts["trials replayed"] += done
        while done < total:
            if self.is_told_to_cancel:
                raise CancelRequestedError
            if self.is_told_to_pause:
                raise PauseRequestedError
            if self.world.by_chance(SLICE_OVER) and (
                yield lambda session: yield_to_others(session, *held, "slice over")
            ):
                self.world.counts["yielded"] += 1
                return True
            if self.world.by_chance(FAILS):
                yield lambda session: leases.finish_failed(session, *held, _ERROR)
                return True
            if self.world.by_chance(STOPS):
                self.world.counts["given back"] += 1
                yield lambda session: leases.release(session, *held, "the worker is told to stop")
                return True
            size = self.world.random.randint(1, MOST_IN_BATCH)
            batch = [trial_of(salt, place) for place in range(done, min(done + size, total))]
            yield _Batch(job, batch)
            done += len(batch)
        return False

    def _check_claim(self, before: Snapshot, free: set[str], job: Job) -> None:
        """The claimed job was free, has a new fence, and was the next."""
        self.world.counts["claims"] += 1
        was = before.jobs[job.id]
        if was["state"] != JobState.QUEUED:
            self.world.counts["taken over"] += 1
            is_held = was["lease_until"] is not None and was["lease_until"] >= before.now
            if is_held:
                raise BrokenInvariantError(f"{job.name} was taken from {was['worker']}, whose lease has not ended")
        if job.fence <= was["fence"]:
            raise BrokenInvariantError(f"{job.name} was given with fence {job.fence} after {was['fence']}")
        line = [one for one in waiting_jobs(before) if not (_ends_by_itself(one, before) and one["id"] in free)]
        others = [one for one in line if one["id"] in free and one["id"] != job.id and not _ends_by_itself(one, before)]
        wrong = wrong_claim(before, line, was, others)
        if wrong is not None:
            raise BrokenInvariantError(f"wrong order: {wrong}")


@dataclass(frozen=True)
class _Read:
    """Reads, which no fence forbids."""

    statement: Statement

    def __call__(self, session: Session) -> Any:
        return self.statement(session)


@dataclass(frozen=True)
class _Batch:
    """Writes trials. It may come twice, if its first answer was lost."""

    job: Job
    batch: list[Trial]

    def __call__(self, session: Session) -> None:
        progress = {"done": self.batch[-1].seq + 1}
        leases.add_trials(session, self.job.id, self.job.fence, self.batch, progress)


def _check_fence(session: Session, job: Job) -> None:
    """A write that was not refused came from the one fence that is valid: it still is, or the write has ended the job."""
    session.flush()
    now = session.get_one(Job, job.id, populate_existing=True)
    if now.fence not in (job.fence, job.fence + 1) or (now.fence == job.fence + 1 and now.worker is not None):
        raise BrokenInvariantError(f"a write with fence {job.fence} was taken while {now.fence} is valid of {job.name}")


def _ends_by_itself(job: Row, snapshot: Snapshot) -> bool:
    """Whether a claim that meets the job ends it instead of taking it."""
    return job["state"] == JobState.CANCELLING or _is_spent(job, snapshot)


def _is_spent(job: Row, snapshot: Snapshot) -> bool:
    is_lost = job["lease_until"] is not None and job["lease_until"] < snapshot.now
    return is_lost and job["attempt"] >= job["max_attempts"]


def _file_of(job: Job) -> Artifact:
    return Artifact(job_id=job.id, name="plan.json", sha256="0" * 64, bytes=1, media_type="application/json")
