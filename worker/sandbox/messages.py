"""What a job's process and the worker say to each other: one JSON object a line.

The process works on what strangers have sent, so that all it says is checked here for form, size and order of magnitude, and
what it means by whoever reads it.
"""

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

from axformer.config import AnyConfig
from axformer.data.columns import Columns
from axformer.intake.limits import DIMENSIONS
from axformer.plan.elements import Dimensions
from axformer.plan.trial import Trial
from axformer.repair.settings import FinetuneSettings
from axformer.wire.kinds import JobKind

_LONGEST_TEXT = 4000
"""Characters of a message to a job's owner; the longest of the library has some hundreds, and paths in them are long."""
_LONGEST_TRACE = 20_000
_MOST_NOTES = 20
_MOST_PASSES = 1000
_MOST_NUMBER = 2**63 - 1


def _storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a character that PostgreSQL does not store")
    return text


Text = Annotated[str, StringConstraints(max_length=_LONGEST_TEXT), AfterValidator(_storable)]
Bytes = Annotated[int, Field(ge=0, le=_MOST_NUMBER)]


class Message(BaseModel):
    """Base of all messages."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def line(self) -> bytes:
        """As it is sent. Losses may be infinite, which JSON proper has no word for and Python's has."""
        return json.dumps(self.model_dump(mode="json"), separators=(",", ":")).encode()


class Source(Message):
    """A data file; see :class:`axformer.data.source.DataSource`."""

    path: str
    columns: Columns


class Order(Message):
    """What to work on."""

    type: Literal["order"] = "order"
    kind: JobKind
    checkpoint: str
    validation: Source
    test: Source | None
    calibrate: Source | None
    train: Source | None
    config: AnyConfig
    device: str
    shards: int
    finetune: FinetuneSettings | None
    output: str
    """Directory in which the result is to appear."""
    forms: tuple[str, ...]
    upto: int | None = None
    """Of an export: the trial that its pass ends after."""


class GoAhead(Message):
    """The worker has room for the memory that was estimated."""

    type: Literal["go_ahead"] = "go_ahead"


class Replay(Message):
    """Trials that were stored, the next ones in order."""

    type: Literal["replay"] = "replay"
    trials: tuple[Trial, ...]


class Begin(Message):
    """All that was stored has been replayed; go on from there."""

    type: Literal["begin"] = "begin"


class Suspend(Message):
    """Wait after this trial."""

    type: Literal["suspend"] = "suspend"


class GoOn(Message):
    """Wait no longer."""

    type: Literal["go_on"] = "go_on"


class Restrictions(Message):
    """The restrictions that this system does not grant, and why; the launcher sends it before the process works on anything."""

    type: Literal["restrictions"] = "restrictions"
    refused: dict[str, Text]


class Ready(Message):
    """The libraries are imported."""

    type: Literal["ready"] = "ready"
    auto: Literal["cpu", "cuda"]
    """The device that ``auto`` stands for here."""


class Memory(Message):
    """Bytes of main memory, and of a GPU's."""

    host_bytes: Bytes
    device_bytes: Bytes


class MemoryEstimate(Message):
    """What memory the job takes and what there is, by what the files say of themselves."""

    type: Literal["memory_estimate"] = "memory_estimate"
    least: Memory
    at_ease: Memory
    total: Memory
    free: Memory
    parameters: Bytes
    data_bytes: Bytes


class Shape(Message):
    """See :class:`axformer.plan.elements.Dimensions`; no more than of the largest model that is let in."""

    layers: int = Field(ge=1, le=DIMENSIONS["num_hidden_layers"])
    heads: int = Field(ge=1, le=DIMENSIONS["num_attention_heads"])
    hidden_size: int = Field(ge=1, le=DIMENSIONS["hidden_size"])
    intermediate_size: int = Field(ge=1, le=DIMENSIONS["intermediate_size"])

    @property
    def dimensions(self) -> Dimensions:
        """The same for the library."""
        return Dimensions(**self.model_dump())


class Opened(Message):
    """The model and the data are loaded, and fit."""

    type: Literal["opened"] = "opened"
    notes: Annotated[tuple[Text, ...], Field(max_length=_MOST_NOTES)]
    first_look: Text | None
    """The data that decides, and what the untouched model makes of it; None for an export."""
    shape: Shape


class SpeedEstimate(Message):
    """See :class:`axformer.methods.targets.SpeedEstimate`."""

    operations: Bytes
    estimated_speedup: float = Field(ge=0, allow_inf_nan=False)


class Tried(Message):
    """A new trial."""

    type: Literal["tried"] = "tried"
    trial: Trial
    speed: SpeedEstimate | None
    """Of the plan of its pass's trials up to this one, where it is not that of the trial before."""


class Suspended(Message):
    """It waits; no trial comes before ``go_on``."""

    type: Literal["suspended"] = "suspended"


class Searched(Message):
    """No trial comes any more."""

    type: Literal["searched"] = "searched"
    note: Text | None
    speed: SpeedEstimate
    kept_pass: int = Field(ge=1, le=_MOST_PASSES)
    """Number of the pass that is kept, from 1."""


class Trained(Message):
    """The model is trained, where it was to be, and is packaged now."""

    type: Literal["trained"] = "trained"


class Published(Message):
    """The files are there."""

    type: Literal["published"] = "published"
    report: dict[str, Any]


class Refused(Message):
    """The library refuses what it was given."""

    type: Literal["refused"] = "refused"
    error: Literal[
        "InputError", "ConfigError", "CheckpointError", "DataError", "PoorModelError", "PlanError", "ArtifactError"
    ]
    message: Text


class Failed(Message):
    """Something else went wrong."""

    type: Literal["failed"] = "failed"
    reason: Literal["out_of_memory", "disk_full", "unforeseen"]
    detail: Annotated[str, StringConstraints(max_length=_LONGEST_TRACE), AfterValidator(_storable)]
    """For the operator."""


FROM_WORKER: TypeAdapter[Order | GoAhead | Replay | Begin | Suspend | GoOn] = TypeAdapter(
    Annotated[Order | GoAhead | Replay | Begin | Suspend | GoOn, Field(discriminator="type")]
)
Answer = (
    Restrictions
    | Ready
    | MemoryEstimate
    | Opened
    | Tried
    | Suspended
    | Searched
    | Trained
    | Published
    | Refused
    | Failed
)
FROM_PROCESS: TypeAdapter[Answer] = TypeAdapter(Annotated[Answer, Field(discriminator="type")])


def cut(text: str, *, end: bool = False) -> str:
    """A text of any length as one that may be sent; its end where that says more."""
    text = text.replace("\0", "").encode(errors="replace").decode()
    return text[-_LONGEST_TRACE:] if end else text[:_LONGEST_TEXT]


def storable_json(model: BaseModel) -> dict[str, Any]:
    """A model as JSON that PostgreSQL stores.

    Raises:
        ValueError: it holds a number or a character that has no place there.
    """
    text = json.dumps(model.model_dump(mode="json"), allow_nan=False)
    if "\\u0000" in text:
        raise ValueError("holds a character that PostgreSQL does not store")
    found: dict[str, Any] = json.loads(text, parse_int=_bounded)
    return found


def _bounded(digits: str) -> int:
    number = int(digits)
    if not -_MOST_NUMBER <= number <= _MOST_NUMBER:
        raise ValueError("holds a number that nothing here counts to, and that no page could show")
    return number
