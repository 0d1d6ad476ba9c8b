"""Accounting of the worker time that each team has used."""

from functools import cache

from sqlalchemy import Update, delete, func, insert, select, update
from sqlalchemy.orm import Session

from store.repositories.line import Rules, faded, held_seconds, held_until
from store.tables.jobs import Job
from store.tables.teams import Team
from store.tables.turns import Turn


def end_turn(session: Session, job: Job) -> None:
    """Record how long the worker of a locked job has held it; for a lost worker, until its lease expired.

    A job without a worker gets no record.
    """
    if job.worker is None:
        return
    turn = select(Job.team_id, held_seconds(), held_until()).where(Job.id == job.id)
    session.execute(insert(Turn).from_select(["team_id", "seconds", "ended_at"], turn))
    job.worker_seconds = Job.worker_seconds + held_seconds()
    job.worker = job.lease_until = job.claimed_at = None


def settle_turns(session: Session, rules: Rules) -> None:
    """Add ended turns to their teams' accounts. The total use of a team does not change."""
    session.execute(_settlement(rules), execution_options={"synchronize_session": False})


@cache
def _settlement(rules: Rules) -> Update:
    ended = delete(Turn).returning(Turn.team_id, Turn.seconds, Turn.ended_at).cte("ended")
    seconds = func.sum(faded(ended.c.seconds, ended.c.ended_at, rules)).label("seconds")
    sums = select(ended.c.team_id, seconds).group_by(ended.c.team_id).cte("sums")
    used = faded(Team.used_seconds, Team.used_as_of, rules) + sums.c.seconds
    account = update(Team).where(Team.id == sums.c.team_id)
    return account.values(used_seconds=used, used_as_of=func.statement_timestamp())
