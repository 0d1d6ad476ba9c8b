"""Simulated callers of the API: they post, cancel, retry and delete, and send again what was not answered."""

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from store.errors import IllegalTransitionError
from store.repositories import jobs, steering
from store.repositories.jobs import Created, NewJob
from store.settings import MAX_ATTEMPTS
from store.states import TERMINAL, JobState
from tests.simulation.world import NoAnswerError, World
from tests.specs import spec_of

FEWEST_TRIALS, MOST_TRIALS = 3, 18
CANCELS = 0.3
"""Share of the looks at a job that has not ended after which it is cancelled."""
PAUSES = 0.2
RESUMES = 0.6


@dataclass
class Clients:
    """All callers, of some teams."""

    world: World
    teams: list[str]
    wanted: int
    """How many jobs they post."""
    unanswered: list[NewJob] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)
    """By idempotency key, the job that was answered."""
    posted: int = 0

    def act(self) -> None:
        """Post a job, or do something with one."""
        if self.unanswered and self.world.by_chance(0.5):
            self._post(self.unanswered.pop())
        elif self.posted < self.wanted:
            self._post(self._new())
        else:
            self._change()

    def finish(self) -> None:
        """Post what is not answered yet, and let what is paused go on."""
        while self.unanswered:
            self._post(self.unanswered.pop())

    def resume_all(self) -> None:
        """Let everything go on that is paused."""
        for job in self.world.seen.jobs.values():
            if job["state"] == JobState.PAUSED:
                self._resume(job["id"])

    def _resume(self, job_id: str) -> None:
        self._ask("resumptions", lambda session: steering.resume_job(session, job_id), wakes=True)

    def _new(self) -> NewJob:
        random = self.world.random
        self.posted += 1
        trace = {"salt": str(random.randrange(2**32)), "trials": str(random.randint(FEWEST_TRIALS, MOST_TRIALS))}
        return NewJob(
            team_id=random.choice(self.teams),
            name=f"job {self.posted}",
            spec=spec_of(),
            labels=trace,
            priority=random.choice([0, 0, 0, 5]),
            max_attempts=random.randint(1, MAX_ATTEMPTS),
            idempotency_key=f"key {self.posted}",
            body_sha256=b"",
        )

    def _post(self, new: NewJob) -> None:
        def answer(result: Any) -> None:
            if isinstance(result, NoAnswerError):
                self.unanswered.append(new)
                return
            assert isinstance(result, Created), result
            assert new.idempotency_key is not None
            first = self.known.setdefault(new.idempotency_key, result.job.id)
            assert first == result.job.id, f"{new.name} was made twice: {first} and {result.job.id}"
            if result.is_new:
                self.world.send()
            else:
                self.world.counts["posts sent again"] += 1

        self.world.transact(lambda session: jobs.create_job(session, new), answer)

    def _change(self) -> None:
        snapshot = self.world.seen
        mine = sorted((one["created_at"], one["id"]) for one in snapshot.jobs.values())
        if not mine:
            return
        job = snapshot.jobs[self.world.random.choice(mine)[1]]
        if job["state"] not in TERMINAL and self.world.by_chance(PAUSES):
            self._ask("pauses", lambda session: steering.request_pause(session, job["id"]))
        elif job["state"] == JobState.PAUSED and self.world.by_chance(RESUMES):
            self._resume(job["id"])
        elif job["state"] not in TERMINAL and not self.world.by_chance(CANCELS):
            return
        elif job["state"] not in TERMINAL:
            self._ask("cancels", lambda session: steering.request_cancel(session, job["id"]))
        elif job["state"] == JobState.SUCCEEDED or self.world.by_chance(0.3):
            self._ask("deletes", lambda session: steering.delete_job(session, job["id"]))
        else:
            self._ask("retries", lambda session: steering.retry_job(session, job["id"]), wakes=True)

    def _ask(self, what: str, statement: Any, wakes: bool = False) -> None:
        def answer(result: Any) -> None:
            # What cannot be done any more is refused, and what is gone is not found.
            if isinstance(result, IllegalTransitionError):
                self.world.counts[f"{what} refused"] += 1
            elif not isinstance(result, Exception):
                self.world.counts[what] += 1
                if wakes:
                    self.world.send()

        def checked(session: Session) -> Any:
            result = statement(session)
            return True if result is None else result

        self.world.transact(checked, answer)
