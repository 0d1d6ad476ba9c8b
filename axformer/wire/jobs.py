"""Jobs as they are posted and as they are shown."""

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, SecretStr

from axformer.config import DEFAULT_PRESET, Preset
from axformer.data.columns import Columns
from axformer.wire.base import LABEL_COUNT, LabelKey, LabelValue, Name, Schema, Uri, without_zero_bytes
from axformer.wire.devices import Device, DeviceWord
from axformer.wire.finetuning import FinetuneSettings
from axformer.wire.kinds import JobKind, KindWord
from axformer.wire.queue import PlaceRead
from axformer.wire.states import TERMINAL, JobState, StateWord
from axformer.wire.webhooks import Webhook

PRIORITY_MOST = 100
_TOKEN_LENGTH = 500
"""Characters; those of Hugging Face have 37."""
FormName = Literal["compact", "zeroed", "onnx", "onnx_int8"]
"""The names of :data:`axformer.forms.kinds.KINDS`."""


def usual_forms() -> list[FormName]:
    """The forms of a result where none are asked for: the compact one alone, since others take minutes to make."""
    return ["compact"]


def _for_header(token: SecretStr) -> SecretStr:
    if re.fullmatch(f"[!-~]{{1,{_TOKEN_LENGTH}}}", token.get_secret_value()) is None:
        raise ValueError(f"is not a token: at most {_TOKEN_LENGTH} letters, digits and signs of ASCII, without spaces")
    return token


HubToken = Annotated[SecretStr, AfterValidator(_for_header)]
"""Letters, digits and signs of ASCII, as they may stand in a header."""


Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
"""In hexadecimal digits, lower case."""


class CheckpointRef(Schema):
    """Where the fine-tuned model lies."""

    uri: Uri
    """``https://`` (directory or archive), ``hf://ORG/NAME[@REVISION]``, ``s3://BUCKET/PREFIX``, ``file:///PATH`` under
    a root that the operator has opened, or ``upload:ID``."""
    sha256: Sha256 | None = None
    """What must be there, else the job fails before anything is loaded: of an archive its own, of a directory what the event
    ``job.fetched`` told of it before."""


class DataRef(Schema):
    """Where a data set lies and how to read it."""

    uri: Uri
    """A JSON Lines, CSV or Parquet file: ``https://``, ``hf://datasets/ORG/NAME[@REVISION]/PATH``, ``s3://``, ``file://``
    or ``upload:ID``."""
    sha256: Sha256 | None = None
    """The file's own, which must be there, else the job fails before it is read."""
    columns: Annotated[Columns | None, AfterValidator(without_zero_bytes)] = None
    """Names of the columns that the model's task reads, where they are not ``text``, ``text_pair``, ``label`` and so on."""


class JobCreate(Schema):
    """What to prune, with which data, and how."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "reviews, nightly",
                    "checkpoint": {"uri": "hf://acme/bert-reviews@main"},
                    "validation": {
                        "uri": "s3://acme-data/reviews/dev.jsonl",
                        "columns": {"text": "sentence", "label": "label"},
                    },
                    "test": {"uri": "upload:upl_0199d1c2a4b37c5f8e21d3b4a5968778"},
                    "preset": "paper",
                    "config": {"refine_margin": 1.2},
                    "priority": 0,
                    "labels": {"project": "reviews"},
                    "webhook": {"url": "https://ci.acme.example/axformer", "events": ["job.succeeded", "job.failed"]},
                }
            ]
        }
    )

    name: Name
    """For people; need not be unique."""
    checkpoint: CheckpointRef
    validation: DataRef
    """The data that decides what is removed."""
    test: DataRef | None = None
    """Held-out data: measured before and after, never used to decide."""
    calibrate: DataRef | None = None
    """Data that weights are fitted on, and the order of leaving is measured on, with a method that does so; without it the rows
    that decide. It needs no labels, and those that it has are not looked at."""
    train: DataRef | None = None
    """Data that the finished model is trained on; without it nothing is trained."""
    finetune: FinetuneSettings | None = None
    """How it is trained; only with ``train``. The report tells the figures before it too."""
    preset: Preset = DEFAULT_PRESET
    """Where the knobs start from."""
    config: Annotated[dict[str, Any], AfterValidator(without_zero_bytes)] = Field(default_factory=dict)
    """Knobs that differ from the preset; ``GET /v1/knobs`` lists them."""
    priority: int = Field(default=0, strict=True, ge=-PRIORITY_MOST, le=PRIORITY_MOST)
    """Higher is sooner, among your team's jobs: each point counts as some minutes of waiting."""
    device: Device = Device.ANY
    """What a worker must have to take the job: ``any`` may run on a CPU too."""
    forms: list[FormName] = Field(default_factory=usual_forms, min_length=1)
    """In which forms the result is handed out. The compact one is always there, and alone where none are named; one that
    cannot be made is named with its reason in the report, and the job succeeds."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict, max_length=LABEL_COUNT)
    """Words to find jobs by."""
    webhook: Webhook | None = None
    """Receives the job's events; needs a secret of the team, see ``POST /v1/webhook-secrets``."""
    hub_token: HubToken | None = None
    """A token of yours for the model hub, with which the job's ``hf://`` references are read. It is stored encrypted, shown to
    nobody, sent to the hub's own host alone, and forgotten when the job ends: a retry reads without it."""


class JobErrorRead(Schema):
    """Why a job failed."""

    code: str
    """Stable, for programs."""
    message: str
    """What was wrong, with which value, and what to do."""
    param: str | None = None
    """The part of the job that is to blame, for example ``checkpoint``."""
    retryable: bool = False
    """Whether the same job may succeed if it is retried as it is."""


class ProgressRead(Schema):
    """How far the pass is."""

    done: int
    """Trials done, the base included; with ``order=search`` those of all passes."""
    known: int
    """Trials done and known to come; grows when a block's parts are to be tried, and falls to ``done`` where the pass stops at
    its target."""
    seconds: float
    seconds_left: float | None = None
    """Known trials left times the mean seconds of a trial so far."""
    base_loss: float | None = None
    """Mean validation loss of the untouched model."""
    first_look: str | None = None
    """The data that decides, and what the untouched model makes of it beside guessing, in words."""
    min_loss: float | None = None
    """Least mean validation loss so far."""
    operations: int | None = None
    """Multiplications and additions that one look at the validation data takes now, counted from shapes; with ``order=search``
    of the pass that runs, and at the end of the one that is kept."""
    estimated_speedup: float | None = None
    """How many times more the untouched model takes."""
    pass_number: int = 1
    """The pass that runs, or ran last, from 1."""
    passes: int = 1
    """How many there are: six with ``order=search``, else one."""
    order: str | None = None
    """The knob ``order`` of that pass; null of a job of an earlier version."""


class ReportRead(Schema):
    """What came of the pass; the whole of it is the artifact ``report.json``."""

    base: dict[str, Any]
    """The untouched model: ``validation`` and ``test`` (loss, metrics), ``parameters``, ``encoder_parameters``, ``bytes``,
    ``operations``, ``encoder_operations``, ``latency_ms``. The encoder is the transformer layers, of which parts can go."""
    pruned: dict[str, Any]
    """The finished model, the same figures."""
    finding: dict[str, Any] | None = None
    """Whether it is better, as far as data that did not decide can tell: ``verdict`` (``gain``, ``no_reliable_gain``, ``loss``
    or ``not_measured``), ``data``, and the same for people in ``sentence``, ``advice`` and ``answers``."""
    certificate: dict[str, Any] | None = None
    """With ``within_points``, how far the metric fell at most, with which confidence; for people in ``sentence``."""
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
    orders: list[dict[str, Any]] | None = None
    """What each order led to where ``order`` is ``search``: ``order``, ``loss``, ``trials``, ``seconds``, ``parameters``,
    ``encoder_parameters``, and whether it was ``kept``."""
    finetune: dict[str, Any] | None = None
    """Where the model was trained: ``settings``, ``data``, ``seconds``, and the pruned model's figures ``before``."""


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


class JobRead(Schema):
    """A job with every setting as it was accepted."""

    id: str
    kind: KindWord = JobKind.PASS
    """What is done: ``pass`` prunes a model, ``export`` hands out a model on the path of another job."""
    group: str | None
    """Of a cell: the group that it was posted with."""
    exported_from: str | None
    """Of an export: the job on whose path its model lies."""
    upto: int | None
    """Of an export: the trial of that job that the model stands after."""
    name: str
    state: StateWord
    """``cancelling`` and ``pausing`` mean that the worker was told and has not stopped yet."""
    status_reason: str | None
    """Why it is there, in words."""
    checkpoint: dict[str, Any]
    """As posted; the query of a URL is not shown, since it may hold a signature."""
    validation: dict[str, Any]
    test: dict[str, Any] | None
    calibrate: dict[str, Any] | None = None
    """Null of a service of an earlier version, too."""
    train: dict[str, Any] | None
    finetune: dict[str, Any] | None
    """Every setting with its value; null where nothing is trained."""
    preset: str
    config: dict[str, Any]
    """Every knob with its value."""
    priority: int
    device: DeviceWord
    forms: list[str]
    labels: dict[str, str]
    webhook: Webhook | None
    attempt: int
    """Times a worker has begun it since it was posted or retried."""
    max_attempts: int
    error: JobErrorRead | None
    progress: ProgressRead | None
    report: ReportRead | None
    queue: PlaceRead | None
    """Where it stands while it is queued; shown by ``GET /v1/jobs/{id}`` alone."""
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cancel_requested_at: datetime | None
    links: JobLinks

    @property
    def has_ended(self) -> bool:
        """Whether nothing happens to it by itself any more."""
        return self.state in TERMINAL

    @property
    def has_succeeded(self) -> bool:
        """Whether its files can be downloaded."""
        return self.state == JobState.SUCCEEDED
