"""Jobs from their owners' side: create, find and list them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, and_, or_, select, tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session, undefer

from axformer.wire.devices import Device
from axformer.wire.states import JobKind, JobOutcome
from store.ids import JOB_PREFIX, new_id
from store.page import Page, page_of
from store.repositories.events import record_event
from store.settings import MAX_ATTEMPTS
from store.signing import Vault
from store.states import JobState
from store.tables.jobs import Job
from store.tables.teams import Team


@dataclass(frozen=True)
class NewJob:
    """What a new job is made of; see ``store.tables.jobs.Job`` for the fields."""

    team_id: str
    name: str
    spec: dict[str, Any]
    priority: int = 0
    device: Device = Device.ANY
    labels: dict[str, str] = field(default_factory=dict)
    max_attempts: int = MAX_ATTEMPTS
    idempotency_key: str | None = None
    body_sha256: bytes | None = None
    webhook: dict[str, Any] | None = None
    hub_token: bytes | None = field(default=None, repr=False)
    handover: dict[str, Any] | None = None
    handover_token: bytes | None = field(default=None, repr=False)
    kind: JobKind = JobKind.PASS
    exported_from: str | None = None
    upto: int | None = None


@dataclass(frozen=True)
class Created:
    """A job, and whether it is new or an earlier one with the same idempotency key."""

    job: Job
    is_new: bool


@dataclass(frozen=True)
class JobStanding:
    """The state of a job that watchers poll."""

    state: JobState
    event_count: int
    done: int | None = None
    """Trials done; None before the first."""
    known: int | None = None
    """Trials done and known to come."""
    seconds_left: float | None = None
    """Estimate for those, or for the step after the last trial."""
    step: dict[str, Any] | None = None
    """What is done between two trials or after the last one; see :class:`axformer.wire.steps.Step`."""


def create_job(session: Session, new: NewJob) -> Created:
    """Create a queued job with its first event and the message that wakes a worker.

    If the team has used the idempotency key before, even in a transaction that is just committing, nothing is created and
    that job is returned; the caller compares ``body_sha256``.
    """
    same_key = _of_key(new.team_id, new.idempotency_key)
    begun = {"state": JobState.QUEUED, "attempt": 0, "fence": 0, "event_count": 0}
    made = insert(Job).values(vars(new) | {"id": new_id(JOB_PREFIX)} | begun)
    made = made.on_conflict_do_nothing(index_elements=["team_id", "idempotency_key"])
    while (job := session.scalars(made.returning(Job)).one_or_none()) is None:
        known = session.scalars(same_key).one_or_none()
        if known is not None:  # otherwise it was deleted between the two statements, and the key is free again
            return Created(known, is_new=False)
    record_event(session, job, "job.created", {"state": job.state})
    return Created(job, is_new=True)


def find_of_key(session: Session, team_id: str, key: str) -> Job | None:
    """The team's job of this idempotency key."""
    return session.scalars(_of_key(team_id, key)).one_or_none()


def _of_key(team_id: str, key: str | None) -> Select[Job]:
    same_key = select(Job).where(Job.team_id == team_id, Job.idempotency_key == key)
    return same_key.options(undefer(Job.first_answer))  # loaded now, since the job may be deleted before it is read


def find_job(session: Session, job_id: str, team_id: str) -> Job | None:
    """The team's job with this id; None also if it is another team's."""
    return session.scalars(select(Job).where(Job.id == job_id, Job.team_id == team_id)).one_or_none()


def unended_of_all(session: Session) -> list[tuple[Job, str]]:
    """The jobs of all teams that have not ended, with the names of their teams: the longest held by a worker first."""
    rows = session.execute(
        select(Job, Team.name)
        .join(Team, Team.id == Job.team_id)
        .where(Job.finished_at.is_(None))
        .order_by(Job.claimed_at.asc().nulls_last(), Job.created_at)
    )
    return [(job, team) for job, team in rows]


def hub_token_of(session: Session, job_id: str) -> bytes | None:
    """The encrypted hub token of a job; None if it has none or has ended."""
    return session.scalar(select(Job.hub_token).where(Job.id == job_id))


def renew_tokens(session: Session, vault: Vault) -> int:
    """Encrypt the tokens of all jobs with the vault's first key; the number of jobs that have any.

    Raises:
        VaultKeyError: none of the vault's keys is that of a token.
    """
    query = select(Job).where(or_(Job.hub_token.is_not(None), Job.handover_token.is_not(None))).order_by(Job.id)
    query = query.options(undefer(Job.hub_token), undefer(Job.handover_token)).with_for_update(key_share=True)
    jobs = session.scalars(query.execution_options(populate_existing=True)).all()
    for job in jobs:
        job.hub_token = job.hub_token and vault.lock(vault.unlock(job.hub_token))
        job.handover_token = job.handover_token and vault.lock(vault.unlock(job.handover_token))
    session.flush()
    return len(jobs)


def find_standings(session: Session, job_ids: Sequence[str]) -> dict[str, JobStanding]:
    """The state of each of these jobs that exists, without the rest of its row."""
    done, known = Job.progress["done"].as_integer(), Job.progress["known"].as_integer()
    figures = (done, known, Job.progress["seconds_left"].as_float(), Job.progress["step"])
    query = select(Job.id, Job.state, Job.event_count, *figures).where(Job.id.in_(job_ids))
    return {job_id: JobStanding(*standing) for job_id, *standing in session.execute(query)}


def list_jobs(
    session: Session,
    team_id: str,
    *,
    limit: int,
    after: Job | None = None,
    states: Sequence[JobState] = (),
    kinds: Sequence[JobKind] = (),
    labels: dict[str, str] | None = None,
    text: str | None = None,
    ids: Sequence[str] | None = None,
    outcome: JobOutcome | None = None,
) -> Page[Job]:
    """The team's jobs, newest first, from the one after ``after`` on.

    If given, a filter keeps jobs in one of the ``states``, of one of the ``kinds``, with all ``labels``, with ``text`` in the
    name (in any case) or at the beginning of the id, with one of the ``ids``, and of an ``outcome``.
    """
    query = select(Job).where(Job.team_id == team_id)
    if after is not None:
        query = query.where(tuple_(Job.created_at, Job.id) < (after.created_at, after.id))
    if states:
        query = query.where(Job.state.in_(states))
    if kinds:
        query = query.where(Job.kind.in_(kinds))
    if labels:
        query = query.where(Job.labels.contains(labels))
    if text is not None:
        query = query.where(or_(Job.name.icontains(text, autoescape=True), Job.id.startswith(text, autoescape=True)))
    if ids is not None:
        query = query.where(Job.id.in_(ids))
    if outcome is not None:
        target = Job.summary["target"]
        is_missed, is_useless = (target[name].as_boolean().is_(False) for name in ("reached", "usable"))
        are = {JobOutcome.TARGET_MISSED: is_missed, JobOutcome.NOT_USABLE: is_useless}
        done = and_(is_missed.is_not(True), is_useless.is_not(True))
        query = query.where(Job.state == JobState.SUCCEEDED, are.get(outcome, done))
    query = query.order_by(Job.created_at.desc(), Job.id.desc()).limit(limit + 1)
    return page_of(session.scalars(query).all(), limit)
