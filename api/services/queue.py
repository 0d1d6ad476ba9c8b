"""The places of a team's jobs in the queue, and what they wait for. Of other teams, a team sees counts but no names."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from api.services.estimates import UNKNOWN, WaitingTime
from api.services.queue_view import Living, QueueView
from axformer.wire.devices import Device, can_take, needed_memory
from axformer.wire.queue import AheadRead, PlaceRead, WaitsFor, WorkerRead, WorkersRead
from store.repositories import queue as repository
from store.repositories.keys import Caller
from store.repositories.queue import Waiting
from store.states import JobState
from store.tables.jobs import Job

METHOD = (
    "Running jobs: known trials left times the measured seconds a trial, else the median worker time of their passes less the "
    "time so far. "
    "Queued jobs: given in the order of the queue to the {alive} living workers that can take them, {idle} of them idle "
    "and free at once; a job starts when those before it have run for a time slice of {slice:g} s or have ended, and ends as "
    "if none that has begun were interrupted. A job that has begun takes its known trials left times its measured "
    "seconds a trial, any other the median worker time a pass of the last succeeded jobs of its method or kind{medians}. "
    "Jobs that are posted later may go first."
)


_GB = 1e9


@dataclass(frozen=True)
class Queue:
    """The queue as a team sees it."""

    active: Sequence[tuple[Job, WaitingTime]]
    """The team's jobs that workers hold, each with when it ends."""
    waiting: Sequence[tuple[Waiting, PlaceRead]]
    """The team's waiting jobs, the next first, as many as were asked for."""
    queued_of_all_teams: int
    line: Sequence[bool]
    """Of each waiting job of all teams, the next first, whether it is the team's own."""
    by_team: Sequence[AheadRead]
    """The same counted by team: the team's own first, then the others', most jobs first."""
    counts: Mapping[JobState, int]
    workers: Sequence[WorkersRead]
    method: str
    as_of: datetime


def look(session: Session, view: QueueView, caller: Caller, most: int) -> Queue:
    """The queue in this view, with at most ``most`` waiting jobs of the caller's team."""
    team_id = caller.team_id
    return Queue(
        active=[(job, WaitingTime(None, view.ends[job.id])) for job in view.active if job.team_id == team_id],
        waiting=_waiting(view, caller, most),
        queued_of_all_teams=len(view.line),
        line=[job.team_id == team_id for job in view.line],
        by_team=_Ahead(caller, view.line).by_team(),
        counts=repository.state_counts(session, team_id),
        workers=_workers(view, team_id),
        method=_method(view),
        as_of=view.as_of,
    )


def place_of(view: QueueView, caller: Caller, job: Job) -> PlaceRead | None:
    """The place of a queued job of the caller's team in this view.

    None if it did not wait for a worker, or was posted since.
    """
    waiting = view.by_id.get(job.id)
    if waiting is None:
        return None
    ahead = _Ahead(caller, view.line[: waiting.place - 1])
    return _place(view, waiting, ahead.by_team(), _cause(waiting, view.workers))


class _Ahead:
    """Counts the jobs ahead by team while iterating over the line."""

    def __init__(self, caller: Caller, before: Iterable[Waiting] = ()) -> None:
        self._team_id, self._team_name = caller.team_id, caller.team_name
        self._jobs = Counter(job.team_id for job in before)
        self._unnamed: dict[int, AheadRead] = {}
        """One entry for each count, shared by all places, since a long line repeats few counts."""

    def add(self, team_id: str) -> None:
        """Count a job of this team."""
        self._jobs[team_id] += 1

    def by_team(self) -> list[AheadRead]:
        """The counts as the team sees them: its own first, then the others', most jobs first."""
        own = self._jobs[self._team_id]
        teams: list[AheadRead] = [AheadRead(self._team_name, own)] if own else []
        for jobs in sorted((jobs for team, jobs in self._jobs.items() if team != self._team_id), reverse=True):
            if jobs not in self._unnamed:
                self._unnamed[jobs] = AheadRead(None, jobs)
            teams.append(self._unnamed[jobs])
        return teams


def _waiting(view: QueueView, caller: Caller, most: int) -> list[tuple[Waiting, PlaceRead]]:
    """The first of the team's waiting jobs with their places, the next first."""
    ahead, team_id = _Ahead(caller), caller.team_id
    causes: dict[tuple[Device, bool, str], tuple[WaitsFor, str]] = {}
    places: list[tuple[Waiting, PlaceRead]] = []
    for job in view.line:
        if job.team_id == team_id:
            kind = (job.device, job.held_back, str(job.memory))
            if kind not in causes:
                causes[kind] = _cause(job, view.workers)
            places.append((job, _place(view, job, ahead.by_team(), causes[kind])))
            if len(places) == most:
                break
        ahead.add(job.team_id)
    return places


def _place(view: QueueView, job: Waiting, ahead: Sequence[AheadRead], cause: tuple[WaitsFor, str]) -> PlaceRead:
    (waits_for, reason), estimate = cause, view.estimates.get(job.job_id, UNKNOWN)
    return PlaceRead(
        position=job.place,
        ahead=list(ahead),
        waits_for=waits_for,
        reason=reason,
        starts_in_seconds=estimate.starts,
        ends_in_seconds=estimate.ends,
    )


def _cause(job: Waiting, workers: Sequence[Living]) -> tuple[WaitsFor, str]:
    kind = "worker" if job.device is Device.ANY else f"{job.device} worker"
    able = [worker.time for worker in workers if can_take(worker.time.device, None, job.device, None)]
    if not able:
        return WaitsFor.WORKER, f"no {kind} is alive; the job starts when the operator has started one"
    if not any(can_take(one.device, one.memory, job.device, job.memory) for one in able):
        largest = max(able, key=lambda one: one.memory or 0)
        needed, there_is = needed_memory(largest.device, job.memory) / _GB, (largest.memory or 0) / _GB
        lacks = (
            f"no living {kind} has the {needed:.2f} GB of memory that the job needs: the largest has {there_is:.2f} GB"
        )
        return WaitsFor.WORKER, f"{lacks}; the job starts when the operator has started a larger one"
    if job.held_back:
        limit = job.running_limit
        return WaitsFor.RUNNING_LIMIT, f"your team may run {limit} jobs at a time; the job starts when one of them ends"
    return WaitsFor.TURN, "the job starts when a worker is free and the jobs ahead have begun"


def _workers(view: QueueView, team_id: str) -> list[WorkersRead]:
    """The living workers by kind. Of jobs of other teams nothing is said but since when they run."""
    kinds: dict[tuple[str, Device], list[WorkerRead]] = {}
    for worker in view.workers:
        job = worker.job
        own = job if job is not None and job.team_id == team_id else None
        one = WorkerRead(
            name=worker.name,
            memory=worker.time.memory,
            is_busy=job is not None,
            job_id=None if own is None else own.id,
            job_name=None if own is None else own.name,
            since=None if job is None else job.claimed_at,
        )
        kinds.setdefault((worker.queue or "", worker.time.device), []).append(one)
    return [
        WorkersRead(
            queue=queue or None, device=device, alive=len(each), busy=sum(one.is_busy for one in each), each=each
        )
        for (queue, device), each in sorted(kinds.items())
    ]


def _method(view: QueueView) -> str:
    medians = ", ".join(f"{work} {seconds:.1f} s" for work, seconds in sorted(view.typical.items()))
    return METHOD.format(
        alive=len(view.workers),
        idle=sum(worker.job is None for worker in view.workers),
        slice=view.slice_seconds,
        medians=f" ({medians})" if medians else "",
    )
