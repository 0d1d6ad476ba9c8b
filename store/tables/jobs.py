"""Jobs: what was asked for, where it stands, who works on it, and what came of it."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Double, ForeignKey, Index, LargeBinary, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from axformer.wire.devices import Device
from axformer.wire.kinds import JobKind
from store.states import ACTIVE, JobState
from store.tables.base import Base, CreatedAt, text_enum

_ACTIVE_SQL = ", ".join(f"'{state}'" for state in sorted(ACTIVE))


class Job(Base):
    """One piece of work for a team. ``store.repositories.line`` says in which order jobs are claimed."""

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("team_id", "idempotency_key"),
        CheckConstraint("attempt >= 0 AND event_count >= 0 AND fence >= 0", name="counts"),
        Index("ix_jobs_team_page", "team_id", "created_at", "id"),
        Index("ix_jobs_queue", "team_id", "waits_since", postgresql_where=text("state = 'queued'")),
        Index("ix_jobs_held", "team_id", postgresql_where=text("worker IS NOT NULL")),
        Index("ix_jobs_leases", "lease_until", postgresql_where=text(f"state IN ({_ACTIVE_SQL})")),
        Index("ix_jobs_group_id", "group_id", postgresql_where=text("group_id IS NOT NULL")),
        Index("ix_jobs_labels", "labels", postgresql_using="gin", postgresql_ops={"labels": "jsonb_path_ops"}),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    team_id: Mapped[str] = mapped_column(ForeignKey("teams.id"))
    kind: Mapped[JobKind] = mapped_column(text_enum(JobKind, "kind"), server_default=JobKind.PASS.value)
    """What is done."""
    group_id: Mapped[str | None] = mapped_column(ForeignKey("groups.id"))
    """Of a cell: the group that it was posted with."""
    cell: Mapped[dict[str, Any] | None]
    """Its place in that group's grid: ``set``, ``checkpoint``, ``setting`` and ``seed``."""
    exported_from: Mapped[str | None]
    """Of an export: the job on whose path its model lies; that job may be gone by now."""
    upto: Mapped[int | None]
    """Of an export: the trial that its pass ends after. Its trace up to there is that job's."""
    name: Mapped[str]
    state: Mapped[JobState] = mapped_column(text_enum(JobState, "state"))
    status_reason: Mapped[str | None]
    """Why it is where it is, in words for people."""

    checkpoint: Mapped[dict[str, Any]]
    """Reference to the model: ``uri``."""
    validation: Mapped[dict[str, Any]]
    """Reference to the data that decides: ``uri`` and perhaps ``columns``."""
    test: Mapped[dict[str, Any] | None]
    """Reference to held-out data, measured and never used to decide."""
    calibrate: Mapped[dict[str, Any] | None]
    """Reference to data that weights are fitted on, whose labels nobody looks at; null where the rows that decide are."""
    train: Mapped[dict[str, Any] | None]
    """Reference to data that the finished model is trained on."""
    finetune: Mapped[dict[str, Any] | None]
    """How it is trained, every setting with its value; null where it is not."""
    preset: Mapped[str]
    config: Mapped[dict[str, Any]]
    """Every knob of the pass with its value."""
    priority: Mapped[int]
    """Higher is sooner, among the jobs of the team."""
    device: Mapped[Device] = mapped_column(text_enum(Device, "device"), server_default=Device.ANY.value)
    """What a worker must have to take it."""
    forms: Mapped[list[str]] = mapped_column(server_default='["compact"]')
    """In which forms the result is handed out."""
    labels: Mapped[dict[str, str]]

    error: Mapped[dict[str, Any] | None]
    """Of a failed job: ``code``, ``message``, perhaps ``param``, and ``retryable``."""
    summary: Mapped[dict[str, Any] | None]
    """Of a succeeded job: what is shown of its report (``store.summaries``)."""
    report: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)
    """The content of ``report.json`` but for its ``path``. It may name every neuron of the model, so it is read alone."""
    path: Mapped[list[dict[str, Any]] | None] = mapped_column(deferred=True)
    """The ``path`` of ``report.json``, which may be long: every acceptance of the pass, and which one is the result."""
    progress: Mapped[dict[str, Any] | None]
    """``done``, ``known``, ``seconds``, ``seconds_left``, ``base_loss``, ``min_loss``, ``pass_number``, ``passes``, ``order``,
    ``dimensions``, ``inputs`` and ``first_look``."""
    shown_pass: Mapped[int] = mapped_column(server_default=text("1"))
    """Number of the pass whose trials are the job's trace: the one that runs, and of a finished job the one that was kept."""

    attempt: Mapped[int]
    """Times a worker has begun it since it was created or retried."""
    max_attempts: Mapped[int]
    fence: Mapped[int]
    """Grows with every claim and with every end; a writer with an older number is refused."""
    worker: Mapped[str | None]
    lease_until: Mapped[datetime | None]
    claimed_at: Mapped[datetime | None]
    """When the worker that has it took it."""
    worker_seconds: Mapped[float] = mapped_column(Double, server_default=text("0"))
    """How long workers have held it since it was created or retried, without the one that has it now."""
    cancel_requested_at: Mapped[datetime | None]
    event_count: Mapped[int]
    """Number of the last event."""

    idempotency_key: Mapped[str | None]
    body_sha256: Mapped[bytes | None] = mapped_column(LargeBinary)
    """Hash of the request that carried the idempotency key."""
    first_answer: Mapped[str | None] = mapped_column(deferred=True)
    """The JSON that this request was answered with, and is answered with again when it comes again."""
    webhook: Mapped[dict[str, Any] | None]
    """Who is told of its events: ``url`` and ``events``, their types."""

    hub_token: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    """For the model hub, encrypted; null where the job brought none, and when it has ended."""

    created_at: Mapped[CreatedAt]
    waits_since: Mapped[CreatedAt]
    """Its place among the jobs of its team: when it was made or retried, or when its last time slice ended."""
    started_at: Mapped[datetime | None]
    """When the present attempt was claimed."""
    finished_at: Mapped[datetime | None]


REFERENCES = (Job.checkpoint, Job.validation, Job.test, Job.calibrate, Job.train)
"""The columns that say where content lies; an upload that one of them names is in use."""
