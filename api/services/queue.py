"""Where a team's jobs stand in the queue, and what they wait for. Of other teams a team sees numbers, never names."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from api.schemas.queue import AheadRead, WaitsFor
from api.services.estimates import UNKNOWN, Estimate, can_take
from api.services.queue_view import Living, View
from store.devices import Device
from store.repositories import queue as repository
from store.repositories.keys import Caller
from store.repositories.queue import Waiting
from store.states import JobState
from store.tables.jobs import Job

METHOD = (
    "Running jobs: known trials left times the measured seconds a trial, else the median worker time less the time so far. "
    "Queued jobs: given in the order of the queue to the {alive} living workers that can take them, {idle} of them idle "
    "and free at once; a job starts when those before it have run for a time slice of {slice:g} s or have ended, and ends as "
    "if none that has begun were interrupted. A job that has begun takes its known trials left times its measured "
    "seconds a trial, any other the median worker time of the last {sample} succeeded jobs{median}. Jobs that are posted "
    "later may go first."
)


@dataclass(frozen=True)
class Place:
    """Where one waiting job stands."""

    position: int
    """From 1, among the waiting jobs of all teams."""
    ahead: Sequence[AheadRead]
    """The team's own first, then the others', most jobs first."""
    waits_for: WaitsFor
    reason: str
    estimate: Estimate


@dataclass(frozen=True)
class WorkerCount:
    """The living workers of one kind."""

    queue: str | None
    """What they listen to; null, with the device ``any``, of those that have not made themselves known."""
    device: Device
    alive: int
    busy: int


@dataclass(frozen=True)
class Queue:
    """The queue as a team sees it."""

    active: Sequence[tuple[Job, Estimate]]
    """The team's jobs that workers hold, each with when it ends."""
    waiting: Sequence[tuple[Waiting, Place]]
    """The team's waiting jobs, the next first, as many as were asked for."""
    queued_of_all_teams: int
    line: Sequence[bool]
    """Of each waiting job of all teams, the next first, whether it is the team's own."""
    by_team: Sequence[AheadRead]
    """The same counted by team: the team's own first, then the others', most jobs first."""
    counts: Mapping[JobState, int]
    workers: Sequence[WorkerCount]
    method: str
    as_of: datetime


def look(session: Session, view: View, caller: Caller, most: int) -> Queue:
    """The queue as this view has it, with at most so many of the caller's team's waiting jobs."""
    team_id = caller.team_id
    return Queue(
        active=[(job, Estimate(None, view.ends[job.id])) for job in view.active if job.team_id == team_id],
        waiting=_waiting(view, caller, most),
        queued_of_all_teams=len(view.line),
        line=[one.team_id == team_id for one in view.line],
        by_team=_Ahead(caller, view.line).told(),
        counts=repository.state_counts(session, team_id),
        workers=_worker_counts(view),
        method=_method(view),
        as_of=view.as_of,
    )


def place_of(view: View, caller: Caller, job: Job) -> Place | None:
    """Where a queued job of the caller's team stood at this look.

    Null unless it waited for a worker, which a search of orders leaves to its passes, and of a job that came since.
    """
    waiting = view.by_id.get(job.id)
    if waiting is None:
        return None
    ahead = _Ahead(caller, view.line[: waiting.place - 1])
    return _place(view, waiting, ahead.told(), _cause(waiting, view.workers))


class _Ahead:
    """The jobs that go before, by team, while the line is walked along."""

    def __init__(self, caller: Caller, before: Iterable[Waiting] = ()) -> None:
        self._team_id, self._team_name = caller.team_id, caller.team_name
        self._jobs = Counter(one.team_id for one in before)
        self._unnamed: dict[int, AheadRead] = {}
        """Made once for each number: a line of 2,000 has 2,000 entries for a team's hundred jobs, and few numbers."""

    def add(self, team_id: str) -> None:
        """Pass by a job of this team."""
        self._jobs[team_id] += 1

    def told(self) -> list[AheadRead]:
        """As the team is told: its own first, then the others', most jobs first."""
        own = self._jobs[self._team_id]
        told: list[AheadRead] = [{"team": self._team_name, "jobs": own}] if own else []
        for jobs in sorted((jobs for team, jobs in self._jobs.items() if team != self._team_id), reverse=True):
            if jobs not in self._unnamed:
                self._unnamed[jobs] = {"team": None, "jobs": jobs}
            told.append(self._unnamed[jobs])
        return told


def _waiting(view: View, caller: Caller, most: int) -> list[tuple[Waiting, Place]]:
    """The first of the team's waiting jobs with their places, the next first."""
    ahead, team_id = _Ahead(caller), caller.team_id
    causes: dict[tuple[Device, bool], tuple[WaitsFor, str]] = {}
    found: list[tuple[Waiting, Place]] = []
    for one in view.line:
        if one.team_id == team_id:
            kind = (one.device, one.held_back)
            if kind not in causes:
                causes[kind] = _cause(one, view.workers)
            found.append((one, _place(view, one, ahead.told(), causes[kind])))
            if len(found) == most:
                break
        ahead.add(one.team_id)
    return found


def _place(view: View, one: Waiting, ahead: Sequence[AheadRead], cause: tuple[WaitsFor, str]) -> Place:
    return Place(one.place, ahead, *cause, view.estimates.get(one.job_id, UNKNOWN))


def _cause(one: Waiting, workers: Sequence[Living]) -> tuple[WaitsFor, str]:
    if not any(can_take(worker.time.device, one.device) for worker in workers):
        kind = "worker" if one.device is Device.ANY else f"{one.device} worker"
        return WaitsFor.WORKER, f"no {kind} is alive; the job starts when the operator has started one"
    if one.held_back:
        limit = one.running_limit
        return WaitsFor.RUNNING_LIMIT, f"your team may run {limit} jobs at a time; the job starts when one of them ends"
    return WaitsFor.TURN, "the job starts when a worker is free and the jobs ahead have begun"


def _worker_counts(view: View) -> list[WorkerCount]:
    kinds = [(worker.queue or "", worker.time.device, worker.is_idle) for worker in view.workers]
    alive, idle = Counter(kind[:2] for kind in kinds), Counter(kind[:2] for kind in kinds if kind[2])
    return [
        WorkerCount(queue or None, device, count, count - idle[queue, device])
        for (queue, device), count in sorted(alive.items())
    ]


def _method(view: View) -> str:
    typical = view.typical
    return METHOD.format(
        alive=len(view.workers),
        idle=sum(worker.is_idle for worker in view.workers),
        slice=view.slice_seconds,
        sample=view.sample,
        median="" if typical is None else f", {typical:.1f} s",
    )
