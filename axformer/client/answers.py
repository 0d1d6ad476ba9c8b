"""What the service answers, typed. Unknown fields are ignored, and words such as states are plain text, so that a newer
service does not break an older client."""

from datetime import datetime
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from axformer.scores.spread import Spread

SUCCEEDED = "succeeded"
ENDED = frozenset({SUCCEEDED, "failed", "cancelled"})
"""States in which nothing happens to a job by itself any more."""


class Answer(BaseModel):
    """Base of what is read from the service."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)


class JobFailure(Answer):
    """Why a job failed."""

    code: str
    message: str
    param: str | None = None
    retryable: bool = False


class JobProgress(Answer):
    """How far a pass is, in trials; ``known`` can grow while blocks are refined."""

    done: int
    known: int
    seconds: float
    seconds_left: float | None = None
    base_loss: float | None = None
    first_look: str | None = None
    min_loss: float | None = None
    estimated_speedup: float | None = None
    """How many times more operations the untouched model takes than what is left of it."""


class JobPass(Answer):
    """One pass of a search of orders."""

    id: str
    order: str
    state: str
    status_reason: str | None = None
    progress: JobProgress | None = None


class JobReport(Answer):
    """Figures before and after: ``validation`` and ``test`` (loss, metrics), ``parameters`` and ``operations``, of all and of
    the encoder, ``bytes``, ``latency_ms``."""

    base: dict[str, Any]
    pruned: dict[str, Any]
    finding: dict[str, Any] | None = None
    """Whether it is better, as far as data that did not decide can tell: ``verdict``, ``data``, and ``sentence`` for people."""
    one_position_ms: float | None = None
    """Latency of the untouched model in the class of the compact one, which is faster without a removal where this is told."""
    removed_count: int
    """How many elements are gone; a block counts once, with all that it held."""
    hard_attention_count: int | None = None
    """How many layers have hard attention now; null of a service that does not say."""
    estimated_speedup: float | None = None
    """How many times more operations the untouched model takes than the finished one."""
    seconds: float | None = None
    orders: list[dict[str, Any]] | None = None
    finetune: dict[str, Any] | None = None


class Ahead(Answer):
    """How many jobs of one team go before a job; ``team`` is null of other teams."""

    team: str | None
    jobs: int


class Place(Answer):
    """Where a waiting job stands."""

    position: int | None = None
    ahead: list[Ahead] | None = None
    waits_for: str | None = None
    reason: str | None = None
    starts_in_seconds: float | None = None
    ends_in_seconds: float | None = None


class Job(Answer):
    """A job with every setting as it was accepted."""

    id: str
    name: str
    state: str
    parent: str | None = None
    group: str | None = None
    exported_from: str | None = None
    upto: int | None = None
    status_reason: str | None = None
    checkpoint: dict[str, Any]
    validation: dict[str, Any]
    test: dict[str, Any] | None = None
    train: dict[str, Any] | None = None
    finetune: dict[str, Any] | None = None
    preset: str
    config: dict[str, Any]
    priority: int = 0
    device: str = "any"
    forms: list[str] = []
    labels: dict[str, str] = {}
    webhook: dict[str, Any] | None = None
    attempt: int = 0
    max_attempts: int = 0
    error: JobFailure | None = None
    progress: JobProgress | None = None
    passes: list[JobPass] | None = None
    report: JobReport | None = None
    queue: Place | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing happens to it by itself any more."""
        return self.state in ENDED

    @property
    def has_succeeded(self) -> bool:
        """Whether its files can be downloaded."""
        return self.state == SUCCEEDED


class PathPoint(Answer):
    """A model on the path of a pass; ``seq`` is the trial that made it, 0 of the untouched one."""

    seq: int
    element: str | None = None
    loss: float
    confirming: dict[str, float] | None = None
    test: dict[str, float] | None = None
    parameters: int
    encoder_parameters: int | None = None
    operations: int
    encoder_operations: int | None = None
    estimated_speedup: float
    estimated_latency_ms: float | None = None
    kept: bool


class PassPath(Answer):
    """Every model that a pass went through; each contains all that follow. Empty before the job has succeeded."""

    kept: int | None = None
    data: list[PathPoint]


class GroupRow(Answer):
    """What came of one setting on one set, over checkpoints and seeds; a change is after less before."""

    set: str
    setting: str
    preset: str | None = None
    """Null of an older service."""
    config: dict[str, Any] = {}
    """Knobs that differ from the preset."""
    jobs: int
    succeeded: int
    changes: dict[str, dict[str, Spread]]
    """By the data (``validation``, ``confirming``, ``test``) and the figure (``loss``, metrics)."""
    removed: Spread | None = None
    """Share of the parameters that is gone."""
    encoder_removed: Spread | None = None
    """The same of those in the transformer layers."""
    operations: Spread | None = None
    latency: Spread | None = None
    latency_by_pruning: Spread | None = None
    """How many times faster a forward pass is than that of the untouched model in the class of the compact one."""
    verdicts: dict[str, int] = {}


class GroupCell(Answer):
    """One job of a group, and its place in the grid."""

    job: str
    set: str
    checkpoint: int
    setting: str
    seed: int | None = None
    state: str


class Group(Answer):
    """Jobs that were posted as one grid, and the table of what came of them."""

    id: str
    name: str
    has_ended: bool
    counts: dict[str, int]
    rows: list[GroupRow]
    cells: list[GroupCell]
    created_at: datetime


class QueuedJob(Place):
    """One of the team's jobs that has not ended."""

    id: str
    name: str
    state: str
    device: str = "any"


class Queue(Answer):
    """Where the team's jobs stand."""

    data: list[QueuedJob]
    counts: dict[str, int]
    queued_of_all_teams: int
    workers_alive: int
    workers_busy: int
    eta_method: str
    as_of: datetime


class Event(Answer):
    """One thing that happened to a job; ``seq`` counts from 1 without gaps."""

    seq: int
    type: str
    data: dict[str, Any]
    created_at: datetime


class Artifact(Answer):
    """One file of a finished job; ``name`` is its path inside the result."""

    name: str
    sha256: str
    bytes: int
    media_type: str
    created_at: datetime


class ArtifactList(Answer):
    """All files of a job."""

    data: list[Artifact]


class Upload(Answer):
    """A file that was sent; ``uri`` is what a job names it by."""

    id: str
    uri: str
    filename: str
    sha256: str
    bytes: int
    created_at: datetime


class Key(Answer):
    """A key of the team, without its secret."""

    id: str
    name: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    replaced_by: str | None = None


class NewKey(Key):
    """A key that was just made; ``key`` is what to send, shown this once."""

    key: str


class RotatedKey(NewKey):
    """A key that takes the place of another, which is valid until its ``expires_at``."""

    replaces: Key


class Team(Answer):
    """A team."""

    id: str
    name: str


class Me(Answer):
    """Who a key is."""

    team: Team
    key: Key


class AuditEntry(Answer):
    """Who changed what, or a key that was refused; ``key_id`` is null of the operator of the service."""

    id: int
    at: datetime
    key_id: str | None
    action: str
    object_id: str | None
    address: str | None
    times: int


Item = TypeVar("Item")
Cursor = TypeVar("Cursor", int, str)


class Page(Answer, Generic[Item, Cursor]):
    """Part of a list, and where it goes on."""

    data: list[Item]
    has_more: bool
    next: Cursor | None
