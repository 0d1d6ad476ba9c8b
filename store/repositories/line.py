"""The order in which the waiting jobs of all teams are claimed; no other place defines it.

A free worker takes a job of the team with the fewest running jobs; among equal teams, of the one that has used the least
worker time, which decays with a half-life. Within a team the job that has waited longest goes first, and each point of
priority counts as some seconds of waiting.

No job waits forever: a team's used time decays while that of the others grows, and a job is overtaken only by jobs of its
team that arrive within the head start of their priority.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    CTE,
    BigInteger,
    Double,
    ScalarSelect,
    SQLColumnExpression,
    Text,
    Update,
    and_,
    cast,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Session, aliased
from sqlalchemy.sql.elements import ColumnElement

from axformer.wire.devices import Device
from store.settings import HALF_LIFE_SECONDS, PRIORITY_SECONDS, Settings
from store.states import WORKING, JobState
from store.tables.jobs import WORK, Job
from store.tables.teams import Team
from store.tables.workers import TeamTurn, Worker


@dataclass(frozen=True)
class Abilities:
    """A worker's abilities; the defaults allow every job."""

    device: Device = Device.ANY
    """The worker's device; ``any`` takes every job."""
    knobs: frozenset[str] | None = None
    """The knobs that the worker knows; a job with others is left to a newer worker. None means all."""

    machine: str | None = None
    """The worker's machine; trainings that another one can go on with are left to that one for a while. None takes them too."""

    memory: int | None = None
    """Bytes that the worker's device has; jobs that need more are left to a larger one, and those that a smaller idle one can
    take, to that one for a while. None takes all."""


ALL = Abilities()


_Held = aliased(Job)
_NOW = func.statement_timestamp()
_SHOWN = (Job.id, Job.name, Job.state, Job.team_id, Job.device, Job.spec["memory"].label("memory"), WORK, Job.progress)
_RESERVED = timedelta(minutes=5)
"""How long a job that trains is left to the machine that has the state of its trainings: two time slices and a checkpoint."""
_ALIVE = timedelta(minutes=1)
"""A machine none of whose workers was seen for so long may be gone."""
LEFT = timedelta(seconds=15)
"""How long a job is left to a smaller idle worker: three of its looks for jobs without a message."""
SMALLER = 0.75
"""A smaller worker has at most this share of one's memory, so that like machines do not wait for each other."""
_MOST_HALVINGS = 60.0
"""Older use counts as zero; PostgreSQL would reject the tiny numbers beyond."""


@dataclass(frozen=True)
class Rules:
    """The two parameters of the order."""

    half_life_seconds: float = HALF_LIFE_SECONDS
    priority_seconds: float = PRIORITY_SECONDS


DEFAULT_RULES = Rules()


def rules_of(settings: Settings) -> Rules:
    """The parameters from the operator's settings."""
    return Rules(settings.share_half_life_seconds, settings.priority_seconds)


@cache
def the_line(rules: Rules, able: Abilities = ALL, most: int | None = None) -> CTE:
    """The jobs that wait for a worker with these abilities: all, or ``most`` of each team.

    Columns: ``id``, ``name``, ``state``, ``team_id``, ``device``, ``memory``, ``work``, ``progress``; ``place``, the order of
    claims from 1; ``running_limit``, the team's limit; and ``held_back``, whether that limit prevents claiming the job now.
    """
    standing, waiting = standings(rules), _waiting(rules, able)
    is_near = true() if most is None else waiting.c.behind < most
    # A claim moves a job from those that wait to those that run, so that this order stays while nothing ends.
    turn = standing.c.running + waiting.c.behind
    order = (turn, standing.c.used, waiting.c.key, waiting.c.id)
    columns = [waiting.c[column.key] for column in _SHOWN]
    held_back = func.coalesce(turn >= standing.c.running_limit, False).label("held_back")
    place = func.row_number().over(order_by=order).label("place")
    line = select(*columns, place, standing.c.running_limit, held_back).join(
        standing, standing.c.team_id == waiting.c.team_id
    )
    return line.where(is_near).cte("line")


def standings(rules: Rules) -> CTE:
    """The use of each team: ``team_id``, ``running`` jobs, ``used`` worker seconds, and ``running_limit``."""
    is_alive = Job.lease_until >= _NOW
    fading = func.sum(faded(held_seconds(), held_until(), rules)).label("used")
    held = select(Job.team_id, func.count().filter(is_alive).label("running"), fading)
    now = held.where(Job.worker.is_not(None)).group_by(Job.team_id).subquery()
    ended = select(TeamTurn.team_id, func.sum(faded(TeamTurn.seconds, TeamTurn.ended_at, rules)).label("used"))
    before = ended.group_by(TeamTurn.team_id).subquery()
    account = faded(Team.used_seconds, Team.used_as_of, rules)
    used = account + func.coalesce(before.c.used, 0) + func.coalesce(now.c.used, 0)
    running = func.coalesce(now.c.running, 0)
    columns = (Team.id.label("team_id"), running.label("running"), used.label("used"), Team.running_limit)
    teams = select(*columns).outerjoin(now, now.c.team_id == Team.id).outerjoin(before, before.c.team_id == Team.id)
    return teams.cte("standings").prefix_with("MATERIALIZED")  # else used time would be computed anew for every job


def faded(
    seconds: SQLColumnExpression[float], since: SQLColumnExpression[datetime], rules: Rules
) -> ColumnElement[float]:
    """The present weight of seconds that were used until some time."""
    halvings = func.least(_seconds(_NOW - since) / rules.half_life_seconds, _MOST_HALVINGS)
    return seconds * func.power(cast(0.5, Double), halvings)


def held_seconds() -> ColumnElement[float]:
    """How long a job's worker has held it: until now, or until its lease expired."""
    held = held_until() - func.coalesce(Job.claimed_at, Job.started_at)
    return func.greatest(_seconds(held), cast(0, Double))


def held_until() -> ColumnElement[datetime]:
    """When a job's worker last held it: now, or the end of the lease if the worker was lost."""
    return func.least(_NOW, Job.lease_until)


def is_lost() -> ColumnElement[bool]:
    """Whether the lease of a claimed job has expired."""
    return Job.lease_until < _NOW


def is_waiting() -> ColumnElement[bool]:
    """Whether a job may be given to a worker: it is queued, or its worker was lost."""
    may_go_on = and_(Job.state.in_(WORKING), is_lost(), Job.attempt < Job.max_attempts)
    return or_(Job.state == JobState.QUEUED, may_go_on)


def is_held_back() -> ColumnElement[bool]:
    """Whether the limit of a job's team prevents claiming it now."""
    held = select(func.count()).where(_Held.team_id == Team.id, _Held.worker.is_not(None), _Held.lease_until >= _NOW)
    full = select(Team.id).where(Team.running_limit <= held.correlate(Team).scalar_subquery())
    return Job.team_id.in_(full)


def fits(able: Abilities) -> ColumnElement[bool]:
    """Whether a worker with these abilities can take a job."""
    conditions: list[ColumnElement[bool]] = []
    if able.device is not Device.ANY:
        conditions.append(Job.device.in_([Device.ANY, able.device]))
    if able.knobs is not None:
        knobs = func.coalesce(Job.spec["config"], literal({}, JSONB))
        unknown = knobs.op("-", return_type=JSONB)(literal(sorted(able.knobs), ARRAY(Text)))
        conditions.append(unknown == literal({}, JSONB))
    if able.machine is not None:
        conditions.append(~_is_left_to_another(able.machine))
    if able.memory is not None:
        needed = _needed_memory(able.device)
        left = and_(_waits_since() > _NOW - LEFT, needed <= _most_of_smaller(able.device, able.memory))
        conditions += [needed <= able.memory, ~func.coalesce(left, False)]
    return and_(true(), *conditions)


def _needed_memory(device: Device) -> ColumnElement[int]:
    """:func:`axformer.wire.devices.needed_memory` in SQL."""
    known = (cast(Job.spec["memory"][name].astext, BigInteger) for name in ("asked", device.value))
    return func.greatest(*known, 0)  # which leaves out what is null


def _most_of_smaller(device: Device, memory: int) -> ScalarSelect[int | None]:
    """The memory of the largest idle worker that is smaller than one with this device and memory; null if none lives."""
    is_busy = exists().where(_Held.worker == Worker.process, _Held.lease_until >= _NOW)
    is_smaller = (Worker.device == device, Worker.memory <= memory * SMALLER)
    is_free = (~Worker.is_draining, Worker.last_seen > _NOW - _ALIVE, ~is_busy)
    return select(func.max(Worker.memory)).where(*is_smaller, *is_free).scalar_subquery()


def _waits_since() -> ColumnElement[datetime]:
    """Since when a waiting job waits for any worker: queued, or lost by one."""
    return func.coalesce(Job.lease_until, Job.queued_at)


def _is_left_to_another(machine: str) -> ColumnElement[bool]:
    """Whether another machine has the state of a job's trainings, lives, and has not had long to go on with it."""
    may_have_state = and_(
        Job.spec["run"]["train"]["uri"].astext.is_not(None), Job.machine.is_not(None), Job.machine != machine
    )
    is_recent = _waits_since() > _NOW - _RESERVED
    lives = exists().where(Worker.machine == Job.machine, Worker.last_seen > _NOW - _ALIVE)
    return and_(may_have_state, is_recent, lives)


def _seconds(time: SQLColumnExpression[Any]) -> ColumnElement[float]:
    return cast(func.extract("epoch", time), Double)


def _waiting(rules: Rules, able: Abilities) -> CTE:
    key = _seconds(Job.waits_since) - cast(Job.priority, Double) * rules.priority_seconds
    behind = func.row_number().over(partition_by=Job.team_id, order_by=(key, Job.id)) - 1
    return select(*_SHOWN, key.label("key"), behind.label("behind")).where(is_waiting(), fits(able)).cte("waiting")


def end_turn(session: Session, job: Job) -> None:
    """Record how long the worker of a locked job has held it; for a lost worker, until its lease expired.

    A job without a worker gets no record.
    """
    if job.worker is None:
        return
    turn = select(Job.team_id, held_seconds(), held_until()).where(Job.id == job.id)
    session.execute(insert(TeamTurn).from_select(["team_id", "seconds", "ended_at"], turn))
    job.worker_seconds = Job.worker_seconds + held_seconds()
    job.worker = job.lease_until = job.claimed_at = None


def settle_turns(session: Session, rules: Rules) -> None:
    """Add ended turns to their teams' accounts. The total use of a team does not change."""
    session.execute(_settlement(rules), execution_options={"synchronize_session": False})


@cache
def _settlement(rules: Rules) -> Update:
    ended = delete(TeamTurn).returning(TeamTurn.team_id, TeamTurn.seconds, TeamTurn.ended_at).cte("ended")
    seconds = func.sum(faded(ended.c.seconds, ended.c.ended_at, rules)).label("seconds")
    sums = select(ended.c.team_id, seconds).group_by(ended.c.team_id).cte("sums")
    used = faded(Team.used_seconds, Team.used_as_of, rules) + sums.c.seconds
    account = update(Team).where(Team.id == sums.c.team_id)
    return account.values(used_seconds=used, used_as_of=func.statement_timestamp())
