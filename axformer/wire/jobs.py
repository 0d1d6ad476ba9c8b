"""Jobs as clients post them and as the API shows them."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field, SecretStr

from axformer.wire.analysis import AnalysisAsked, FindingRead
from axformer.wire.base import LABEL_COUNT, LabelKey, LabelValue, Name, Schema, printable
from axformer.wire.devices import Device, DeviceWord, MemoryNeed
from axformer.wire.handovers import DeliverTo, HandoverRead
from axformer.wire.labelling import LabellingRead
from axformer.wire.queue import PlaceRead
from axformer.wire.report import PathPoint
from axformer.wire.run import DATA, FormName, Run
from axformer.wire.states import TERMINAL, JobKind, JobState, KindWord, OutcomeWord, StateWord
from axformer.wire.steps import Step
from axformer.wire.webhooks import Webhook

PRIORITY_MOST = 100
MEMORY_MOST = 2**50
HubToken = Annotated[SecretStr, printable(500)]
"""Tokens of Hugging Face have 37 characters."""


class Posted(Schema):
    """What is said of a job beside what it does."""

    name: Name
    """For people; need not be unique."""
    priority: int = Field(default=0, strict=True, ge=-PRIORITY_MOST, le=PRIORITY_MOST)
    """Jobs of higher priority go first within your team: each point counts as some minutes of waiting."""
    device: Device = Device.ANY
    """The device that a worker must have; ``any`` may also run on a CPU."""
    device_memory: int | None = Field(default=None, strict=True, ge=1, le=MEMORY_MOST)
    """Bytes that its device must have at least. Without it the service finds out when a worker first looks at the files."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict, max_length=LABEL_COUNT)
    """Words to find jobs by."""
    webhook: Webhook | None = None
    """Receives the job's events; needs a secret of the team, see ``POST /v1/webhook-secrets``."""
    hub_token: HubToken | None = None
    """Your token for the model hub, used to read the job's ``hf://`` references. It is stored encrypted, never shown, sent only
    to the hub's own host, and deleted when the job ends, so a retry reads without it."""


class JobCreate(Posted, Run):
    """What to prune, with which data, and how."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "reviews, nightly",
                    "checkpoint": "hf://acme/bert-reviews@main",
                    "validation": {
                        "uri": "s3://acme-data/reviews/dev.jsonl",
                        "columns": {"text": "sentence", "label": "label"},
                    },
                    "test": "upload:upl_0199d1c2a4b37c5f8e21d3b4a5968778",
                    "preset": "paper",
                    "config": {"refine_margin": 1.2},
                    "priority": 0,
                    "labels": {"project": "reviews"},
                    "webhook": {"url": "https://ci.acme.example/axformer", "events": ["job.succeeded", "job.failed"]},
                }
            ]
        }
    )

    deliver: DeliverTo | None = None
    """Where to put the files of the result, beside keeping them here."""


class JobErrorRead(Schema):
    """Why a job failed."""

    code: str
    """Stable code for programs."""
    message: str
    """What was wrong, with which value, and what to do."""
    param: str | None = None
    """The part of the job that caused the error, for example ``checkpoint``."""
    retryable: bool = False
    """Whether the unchanged job may succeed if it is retried."""


class ProgressRead(Schema):
    """Progress of the pass."""

    done: int
    """Trials done, including the base."""
    known: int
    """Trials done and known to come. It grows when a block's parts are to be tried, and falls to ``done`` if the pass stops at
    its target."""
    seconds: float
    seconds_left: float | None = None
    """Known trials left times the mean seconds of a trial so far."""
    base_loss: float | None = None
    """Mean validation loss of the untouched model."""
    first_look: str | None = None
    """One line on the validation data, and on the untouched model's figures next to guessing."""
    min_loss: float | None = None
    """Lowest mean validation loss so far."""
    operations: int | None = None
    """Multiplications and additions that one forward pass over the validation data takes now, counted from shapes."""
    estimated_speedup: float | None = None
    """Operations of the untouched model divided by those."""
    kept: int | None = None
    """The trial whose model is kept, once that is decided; the figures here are then of that model."""
    step: Step | None = None
    """What is done between two trials or after the last one, where that takes long."""


class ReportRead(Schema):
    """The results of the pass; the artifact ``report.json`` has all of them."""

    base: dict[str, Any]
    """The untouched model: ``validation`` and ``test`` (loss, metrics), ``parameters``, ``encoder_parameters``, ``bytes``,
    ``operations``, ``encoder_operations``, ``latency_ms``. The encoder is the transformer layers, which a pass can prune."""
    pruned: dict[str, Any]
    """The finished model, the same figures."""
    finding: dict[str, Any] | None = None
    """Whether it is better, as far as data that did not decide can tell: ``verdict`` (``gain``, ``no_reliable_gain``,
    ``within_limit``, ``at_a_cost``, ``loss`` or ``not_measured``), ``data``, and the same for people in ``sentence``,
    ``advice`` and ``answers``."""
    certificate: dict[str, Any] | None = None
    """With ``within_points``, how far the metric fell at most, with which confidence; for people in ``sentence``."""
    doubt: str | None = None
    """Why figures on held-out data, or the certificate, cannot be relied on, in sentences; null where nothing speaks against
    them."""
    target: dict[str, Any] | None = None
    """With ``target_size`` or ``target_speedup``, whether it was ``reached``; for people in ``sentence``."""
    base_form: dict[str, Any] | None = None
    """The untouched model, measured like the forms. Null in reports of earlier versions."""
    before_forms: list[dict[str, Any]] = Field(default_factory=list)
    """The untouched model in ONNX, where the result has such forms: what the runtime brings without pruning."""
    judged: dict[str, Any] | None = None
    """By which rows forms are judged, and how many ``points`` one may cost. Null in reports of earlier versions."""
    advice: dict[str, Any] | None = None
    """Which ``form`` to deploy, if any, with ``times``, ``change`` and ``certified``; for people in ``sentence``. Null in
    reports of earlier versions."""
    forms: list[dict[str, Any]] = Field(default_factory=list)
    """The forms of the result: size, speed, and figures on validation and held-out data. Empty in reports of earlier
    versions."""
    one_position_ms: float | None = None
    """Latency of the untouched model in the class of the compact one, which computes the last layer at the one position that
    the head reads: what it saves is not pruning. Null where the head reads all positions, and in reports of earlier
    versions."""
    removed_count: int
    """How many elements are gone; a block counts once, with all that it held."""
    hard_attention_count: int
    """How many layers have hard attention now."""
    estimated_speedup: float | None = None
    """Operations of the untouched model for each of the finished one."""
    seconds: float | None = None
    """How long the pass took."""
    head: dict[str, Any] | None = None
    """Where a base model got a new head: ``task``, ``labels``, and how it was trained, as in ``finetune``."""
    finetune: dict[str, Any] | None = None
    """Where the model was trained: ``settings``, ``data``, ``seconds``, ``steps``, ``epochs``, ``kept_epoch``, and the pruned
    model's figures ``before``. The ``curve`` of losses is in ``report.json`` alone."""


class JobLinks(Schema):
    """Where to go from here."""

    self: str
    trace: str
    path: str
    events: str
    artifacts: str
    deliveries: str
    cancel: str
    pause: str
    resume: str
    retry: str
    deliver: str = ""
    """Empty of a service of an earlier version, as are the others below."""
    needed: str = ""
    labels: str = ""


class JobRead(Schema):
    """A job with every setting as it was accepted."""

    id: str
    kind: KindWord = JobKind.PASS
    """What is done: ``pass`` prunes a model, ``export`` hands out a model on the path of another job, ``analysis`` reports on a
    model that stays as it is."""
    group: None = None
    """Always null; clients of before 0.2 cannot do without it."""
    exported_from: str | None
    """Of an export: the job on whose path its model lies."""
    upto: int | None
    """Of an export: the trial of that job that the model stands after."""
    name: str
    state: StateWord
    """``cancelling`` and ``pausing`` mean that the worker was told and has not stopped yet."""
    outcome: OutcomeWord | None = None
    """Of a succeeded job: ``done``, ``target_missed`` if the size or the speed that it was to reach was not reached, or
    ``not_usable`` if it was, by a model that lost more than it may, is no better than guessing or answers fewer classes. Null
    before, and from a service of an earlier version."""
    status_reason: str | None
    """Why it is there, in words."""
    checkpoint: dict[str, Any]
    """As posted; the query of a URL is not shown, since it may hold a signature."""
    validation: dict[str, Any] | None = None
    """Null where unlabelled rows alone decide."""
    test: dict[str, Any] | None = None
    calibrate: dict[str, Any] | None = None
    """Null of a service of an earlier version, too."""
    unlabelled: dict[str, Any] | None = None
    """Null of a service of an earlier version, too."""
    train: dict[str, Any] | None = None
    finetune: dict[str, Any] | None = None
    """Every setting with its value; null where nothing is trained."""
    against: dict[str, Any] | None = None
    """Of an analysis: the other model of the report ``drift``."""
    analysis: AnalysisAsked | None = None
    """Of an analysis: what it was asked for."""
    head: dict[str, Any] | None = None
    """The new head of a base model, ``task`` and ``labels``; null for a fine-tuned checkpoint."""
    goal: str | None = None
    """As posted; null where a preset was."""
    posted: dict[str, Any] = Field(default_factory=dict)
    """What the job does, as it was posted, without what nobody may read again."""
    preset: str
    config: dict[str, Any]
    """Every knob with its value."""
    priority: int
    device: DeviceWord
    memory: MemoryNeed | None = None
    """What a worker's device must have; null before anything is known."""
    forms: list[str]
    labels: dict[str, str]
    webhook: Webhook | None
    deliver: HandoverRead | None = None
    """Where its files go, and how far that is."""
    attempt: int
    """Times a worker has begun it since it was posted or retried."""
    max_attempts: int
    error: JobErrorRead | None
    progress: ProgressRead | None
    report: ReportRead | None
    """Of a pass and of an export."""
    labelled: LabellingRead | None = None
    """What labels of its changed answers have certified since it has succeeded; null before the first."""
    findings: list[FindingRead] | None = None
    """Of a succeeded analysis: the last line of each report."""
    queue: PlaceRead | None
    """Where it stands while it is queued; shown by ``GET /v1/jobs/{id}`` alone."""
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cancel_requested_at: datetime | None
    links: JobLinks

    @property
    def sources(self) -> dict[str, dict[str, Any]]:
        """What it reads, by field."""
        given = {part: self.posted.get(part) or getattr(self, part, None) for part in ("checkpoint", *DATA, "against")}
        return {part: source for part, source in given.items() if source is not None}

    @property
    def has_ended(self) -> bool:
        """Whether nothing happens to it by itself any more."""
        return self.state in TERMINAL

    @property
    def has_succeeded(self) -> bool:
        """Whether its files can be downloaded."""
        return self.state == JobState.SUCCEEDED


class PathRead(Schema):
    """Every acceptance gives a model; in a pass, each contains the following ones."""

    kept: int | None
    """``seq`` of the job's result; null before the job has succeeded."""
    data: list[PathPoint]
    """The untouched model first; empty before the job has succeeded."""


class ExportCreate(Schema):
    """How to export a model on the path of a job. Everything else is as in that job."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"forms": ["compact", "onnx"]}]})

    name: Name | None = None
    """Name of the new job; by default it names the trial and the job."""
    forms: list[FormName] = Field(default=["compact"], min_length=1)
    """Forms of the result; the compact one is always included."""
    hub_token: HubToken | None = None
    """A hub token as for a job: tokens are deleted when a job ends, so it may be needed again."""
