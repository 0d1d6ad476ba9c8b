"""Jobs: the request, the state, the worker, and the result; and the events, trials and labels of each."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Double,
    ForeignKey,
    Index,
    LargeBinary,
    Text,
    UniqueConstraint,
    case,
    cast,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSON, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from axformer.config import DEFAULT_METHOD
from axformer.wire.answer_sheet import Answer
from axformer.wire.devices import Device
from axformer.wire.run import DATA
from axformer.wire.states import JobKind
from store.states import ACTIVE, JobState
from store.tables.base import Base, CreatedAt, text_enum

PARTS = ("checkpoint", *DATA, "against")
"""The fields of a run or an analysis that refer to content."""
_ACTIVE_SQL = ", ".join(f"'{state}'" for state in sorted(ACTIVE))


class Job(Base):
    """One piece of work for a team. ``store.repositories.line`` defines the order of claims."""

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("team_id", "idempotency_key"),
        CheckConstraint("attempt >= 0 AND event_count >= 0 AND fence >= 0", name="counts"),
        Index("ix_jobs_team_page", "team_id", "created_at", "id"),
        Index("ix_jobs_queue", "team_id", "waits_since", postgresql_where=text("state = 'queued'")),
        Index("ix_jobs_held", "team_id", postgresql_where=text("worker IS NOT NULL")),
        Index("ix_jobs_leases", "lease_until", postgresql_where=text(f"state IN ({_ACTIVE_SQL})")),
        Index("ix_jobs_handover_at", "handover_at", postgresql_where=text("handover_at IS NOT NULL")),
        Index("ix_jobs_labels", "labels", postgresql_using="gin", postgresql_ops={"labels": "jsonb_path_ops"}),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    team_id: Mapped[str] = mapped_column(ForeignKey("teams.id"))
    kind: Mapped[JobKind] = mapped_column(text_enum(JobKind, "kind"), server_default=JobKind.PASS.value)
    """The kind of work."""
    exported_from: Mapped[str | None]
    """For an export: the job whose path holds its model; that job may have been deleted."""
    upto: Mapped[int | None]
    """For an export: the last trial of its trace, which is a copy of that job's."""
    name: Mapped[str]
    state: Mapped[JobState] = mapped_column(text_enum(JobState, "state"))
    status_reason: Mapped[str | None]
    """Why the job is in its state, for people."""

    spec: Mapped[dict[str, Any]]
    """What it does: ``run`` as it was posted and, of a pass or an export, what that means: ``preset``, ``config`` with every
    knob, ``finetune``, ``forms`` (:class:`axformer.wire.run.SettledRun`). ``memory`` is what is known of its
    :class:`axformer.wire.devices.MemoryNeed`."""
    priority: Mapped[int]
    """Jobs of higher priority go first within the team."""
    device: Mapped[Device] = mapped_column(text_enum(Device, "device"), server_default=Device.ANY.value)
    """The device that a worker must have to take it."""
    labels: Mapped[dict[str, str]]

    error: Mapped[dict[str, Any] | None]
    """For a failed job: ``code``, ``message``, perhaps ``param``, and ``retryable``."""
    summary: Mapped[dict[str, Any] | None]
    """For a succeeded job: the part of its report that is shown with it (``store.summaries``)."""
    report: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)
    """The content of ``report.json`` without its ``path``, or of ``analysis.json``; loaded separately, since it may name every
    neuron of the model."""
    path: Mapped[list[dict[str, Any]] | None] = mapped_column(deferred=True)
    """The ``path`` of ``report.json``, which may be long: every acceptance of the pass, and which one is the result."""
    progress: Mapped[dict[str, Any] | None]
    """``done``, ``known``, ``seconds``, ``seconds_left``, ``base_loss``, ``min_loss``, ``dimensions``, ``inputs``
    and ``first_look``."""

    attempt: Mapped[int]
    """Number of times that a worker has started it since it was created or retried."""
    max_attempts: Mapped[int]
    fence: Mapped[int]
    """Grows with every claim and with every end; a writer with an older number is refused."""
    worker: Mapped[str | None]
    lease_until: Mapped[datetime | None]
    claimed_at: Mapped[datetime | None]
    """When its present worker claimed it."""
    machine: Mapped[str | None]
    """The machine of its last worker, where the state of its trainings lies (``workers.machine``); null once it has ended."""
    worker_seconds: Mapped[float] = mapped_column(Double, server_default=text("0"))
    """Seconds that earlier workers have held it since it was created or retried."""
    cancel_requested_at: Mapped[datetime | None]
    event_count: Mapped[int]
    """Number of the last event."""

    idempotency_key: Mapped[str | None]
    body_sha256: Mapped[bytes | None] = mapped_column(LargeBinary)
    """Hash of the request that carried the idempotency key."""
    first_answer: Mapped[str | None] = mapped_column(deferred=True)
    """The JSON answer to that request, which is sent again if the request is repeated."""
    webhook: Mapped[dict[str, Any] | None]
    """The receiver of its events: ``url``, and ``events`` with the types."""

    hub_token: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    """Encrypted token for the model hub; null if the job has none or has ended."""

    handover: Mapped[dict[str, Any] | None]
    """Where its files are to be put: ``uri``, ``state``, ``round``, ``attempts``, ``changed_at``, perhaps
    ``error``, ``files`` and ``bytes``; see ``store.repositories.handovers``."""
    handover_token: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    """Encrypted token for that place; null when the files are there or cannot be put there."""
    handover_at: Mapped[datetime | None]
    """When a worker may take that on, at the earliest; while one is at it, when it counts as lost."""

    created_at: Mapped[CreatedAt]
    waits_since: Mapped[CreatedAt]
    """Determines its place among its team's jobs: when it was created or retried, or when its last time slice ended."""
    queued_at: Mapped[CreatedAt]
    """When it was last queued: created, retried, resumed, or given back by a worker."""
    started_at: Mapped[datetime | None]
    """When the present attempt was claimed."""
    finished_at: Mapped[datetime | None]

    @property
    def run(self) -> dict[str, Any]:
        """What was posted."""
        return dict(self.spec["run"])

    @property
    def settled(self) -> dict[str, Any]:
        """What a pass or an export does, as :class:`axformer.wire.run.SettledRun` reads it."""
        return {name: value for name, value in self.spec.items() if name != "memory"}

    @property
    def memory(self) -> dict[str, int]:
        """What is known of the memory that a worker's device must have (:class:`axformer.wire.devices.MemoryNeed`)."""
        return dict(self.spec.get("memory", {}))

    @property
    def config(self) -> dict[str, Any]:
        """Every knob of a pass with its value; empty for an analysis."""
        return dict(self.spec.get("config", {}))

    @property
    def sources(self) -> dict[str, dict[str, Any]]:
        """What it reads, by field: references with ``uri`` and perhaps ``columns`` and ``sha256``."""
        return {part: self.run[part] for part in PARTS if self.run.get(part) is not None}


REFERENCES = tuple(Job.spec["run"][part]["uri"].astext for part in PARTS)
"""Where content lies; an upload that one of these names is in use."""


WORK = case(
    (Job.kind != JobKind.PASS, cast(Job.kind, Text)),
    else_=func.coalesce(Job.spec["config"]["method"].astext, DEFAULT_METHOD),
).label("work")
""":func:`work_of` in SQL."""


def work_of(job: Job) -> str:
    """What a job is: the method of a run, otherwise its kind."""
    return str(job.config.get("method", DEFAULT_METHOD)) if job.kind == JobKind.PASS else str(job.kind)


class Event(Base):
    """One thing that happened to a job, numbered from 1 without gaps, written in the transaction that did it."""

    __tablename__ = "events"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    type: Mapped[str]
    data: Mapped[dict[str, Any]]
    created_at: Mapped[CreatedAt]


class TrialRow(Base):
    """One trial of a job, with the fields of ``axformer.plan.trial.Trial``."""

    __tablename__ = "trials"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    phase: Mapped[str]
    element: Mapped[str | None]
    loss: Mapped[float] = mapped_column(Double)
    loss_is_bound: Mapped[bool]
    helped: Mapped[int | None]
    samples: Mapped[int]
    total: Mapped[int]
    min_loss: Mapped[float] = mapped_column(Double)
    verdict: Mapped[str]
    precision: Mapped[str]
    parameters: Mapped[int]
    seconds: Mapped[float] = mapped_column(Double)
    plan: Mapped[list[dict[str, Any]] | None] = mapped_column(JSONB(none_as_null=True))
    """What is left, layer by layer, if the trial is of a whole plan."""
    milliseconds: Mapped[dict[str, list[float]] | None] = mapped_column(JSONB(none_as_null=True))
    """What blocks cost at each size, in the base trial of a run that chooses by latency."""
    figures: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """Figures of the model, if the trial is of a whole plan; as text, since the first metric comes first."""
    levels: Mapped[list[dict[str, Any]] | None] = mapped_column(JSONB(none_as_null=True))
    """The level table, in the first trial that needed it."""
    frequency: Mapped[float | None] = mapped_column(Double)
    """The share of bootstrap draws that accept, if it was asked for."""


class RowLabel(Base):
    """One person's label for a changed answer of a finished job."""

    __tablename__ = "row_labels"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    row_id: Mapped[str] = mapped_column(primary_key=True)
    """The id of the row on the job's answer sheet."""
    key_id: Mapped[str] = mapped_column(primary_key=True)
    """The key that gave it, which stands for a person."""
    label: Mapped[Answer] = mapped_column(JSONB)
    given_at: Mapped[CreatedAt]
    """When it was given or last changed."""
