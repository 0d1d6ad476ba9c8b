"""What must hold after every step, whatever was lost, doubled or killed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from zlib import crc32

from store.repositories.moves import WORKER_LOST
from store.states import ACTIVE, TERMINAL, TRANSITIONS, JobState
from tests.simulation.database import Row, Snapshot

RETRIED = "retried"
_STATE_EVENTS = {f"job.{state}": state for state in JobState}


class BrokenInvariantError(AssertionError):
    """Something happened that never may."""


def loss_of(salt: int, place: int) -> float:
    """The loss of a trial, a function of the job and of its place alone, as it is of a real pass."""
    return crc32(f"{salt}:{place}".encode()) / 2**32


def trace_of(labels: Mapping[str, str]) -> tuple[int, int]:
    """What a job's labels say of its trace: a number that decides its losses, and how many trials it has."""
    return int(labels["salt"]), int(labels["trials"])


@dataclass
class Checker:
    """Compares each snapshot with itself and with the one before."""

    trials: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By job: which life it is in, and how many trials it had."""
    fences: dict[str, int] = field(default_factory=dict)
    ended: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By job: in which life it ended, and how."""

    def check(self, snapshot: Snapshot) -> None:
        """Raises:
        BrokenInvariantError: something does not hold; the message says what.
        """
        for job in snapshot.jobs.values():
            events = snapshot.events.get(job["id"], ())
            life = _check_events(job, events)
            self._check_end(job, life)
            self._check_trials(job, life, snapshot.trials.get(job["id"], ()))
            self._check_lease(job)
            _check_files(job, events, snapshot.files.get(job["id"], 0))

    def _check_end(self, job: Row, life: int) -> None:
        """One end a life, and none is left."""
        before = self.ended.get(job["id"])
        if before is not None and before[0] == life:
            _must(job["state"] == before[1], job, f"was {before[1]} and is {job['state']}")
        if job["state"] in TERMINAL:
            self.ended[job["id"]] = (life, job["state"])

    def _check_trials(self, job: Row, life: int, trials: "tuple[()] | list[Row]") -> None:
        """None lost, none doubled, none of another job."""
        salt, total = trace_of(job["labels"])
        _must([row["seq"] for row in trials] == list(range(len(trials))), job, "has a gap in its trace")
        own = all(row["loss"] == loss_of(salt, place) for place, row in enumerate(trials))
        _must(own, job, "has a trial that is not its own")
        _must(len(trials) <= total, job, "has too many trials")
        known_life, known = self.trials.get(job["id"], (life, 0))
        _must(known_life != life or len(trials) >= known, job, f"had {known} trials and has {len(trials)}")
        if job["state"] == JobState.SUCCEEDED:
            _must(len(trials) == total, job, f"succeeded with {len(trials)} of {total} trials")
        self.trials[job["id"]] = (life, len(trials))

    def _check_lease(self, job: Row) -> None:
        """Fences only grow, and only who is at work has a lease."""
        _must(job["fence"] >= self.fences.get(job["id"], 0), job, "has a fence that was given before")
        self.fences[job["id"]] = job["fence"]
        _must((job["worker"] is None) == (job["lease_until"] is None), job, "has a worker or a lease, but not both")
        _must(job["worker"] is None or job["state"] in ACTIVE, job, "has a worker and does not run")


def _check_events(job: Row, events: "tuple[()] | list[Row]") -> int:
    """Numbers without gaps, legal moves, attempts counted; gives how often the job was retried."""
    _must([row["seq"] for row in events] == list(range(1, job["event_count"] + 1)), job, "has a gap in its events")
    states = [(_STATE_EVENTS[row["type"]], row["data"]) for row in events if row["type"] in _STATE_EVENTS]
    state, attempt, life, has_worker = JobState.QUEUED, 0, 0, False
    for following, data in states:
        _must(following in TRANSITIONS[state], job, f"went from {state} to {following}")
        if following is JobState.FETCHING:
            attempt += 1
            _must(data["attempt"] == attempt, job, f"was begun as attempt {data['attempt']}, and it was its {attempt}.")
            _must(attempt <= job["max_attempts"], job, f"was begun {attempt} times")
            has_worker = True
        if following is JobState.PAUSED:
            attempt -= has_worker and "reason" not in data  # the reason is that the worker was lost
            has_worker = False
        elif following is JobState.QUEUED and state is not JobState.PAUSED:
            is_retry = data.get("reason") == RETRIED
            attempt, life, has_worker = (0, life + 1, False) if is_retry else (attempt - 1, life, False)
        if following is JobState.FAILED and data["error"]["code"] == WORKER_LOST:
            _must(attempt == job["max_attempts"], job, f"was given up after {attempt} attempts")
        state = following
    _must(job["state"] == state, job, f"is {job['state']}, and its events say {state}")
    _must(job["attempt"] == attempt, job, f"counts {job['attempt']} attempts and had {attempt}")
    return life


def _check_files(job: Row, events: "tuple[()] | list[Row]", files: int) -> None:
    """A job that has succeeded has files, until an event says that they are past their time; no other has any."""
    has_lost_them = any(row["type"] == "job.artifacts_removed" for row in events)
    has_succeeded = job["state"] == JobState.SUCCEEDED
    _must((files > 0) == (has_succeeded and not has_lost_them), job, f"is {job['state']} and has {files} files")


def _must(holds: bool, job: Row, otherwise: str) -> None:
    if not holds:
        raise BrokenInvariantError(f"{job['name']} ({job['id']}) {otherwise}")
