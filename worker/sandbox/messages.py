"""Messages between a job's process and the worker: one JSON object per line.

The process handles untrusted files. Its messages are therefore checked here for form, size and order of magnitude; their
meaning is checked where they are used.
"""

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

from axformer.config import RunConfig, make_config
from axformer.errors import (
    ArtifactError,
    AxFormerError,
    CheckpointError,
    ConfigError,
    DataError,
    InputError,
    PlanError,
    PoorModelError,
)
from axformer.intake.footprint import InputName
from axformer.intake.limits import DIMENSIONS
from axformer.plan.elements import Dimensions
from axformer.plan.trial import Trial
from axformer.wire import answer_sheet
from axformer.wire.analyses import AnalysisRun
from axformer.wire.run import SettledRun
from axformer.wire.states import JobKind
from axformer.wire.steps import Step
from worker.sandbox.errors import Reason

_LONGEST_TEXT = 4000
"""Most characters of a text for a job's owner; the library's longest have some hundreds, and contain long paths."""
_LONGEST_TRACE = 20_000
_MOST_NOTES = 20
_MOST_NUMBER = 2**63 - 1


def _storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a character that PostgreSQL does not store")
    return text


def _storable_step(step: Step) -> Step:
    _storable(step.detail or "")
    return step


Text = Annotated[str, StringConstraints(max_length=_LONGEST_TEXT), AfterValidator(_storable)]
Bytes = Annotated[int, Field(ge=0, le=_MOST_NUMBER)]


class Message(BaseModel):
    """Base of all messages."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def line(self) -> bytes:
        """The message as it is sent. Infinite losses are written as Python's JSON extension."""
        return json.dumps(self.model_dump(mode="json"), separators=(",", ":")).encode()


class AnalysisOrder(Message):
    """An analysis."""

    run: AnalysisRun
    """Its references are local files."""
    references: dict[str, str]
    """The inputs as commands name them, by field."""
    digests: dict[str, str]
    """Of the inputs, by field: reports that an earlier process finished are of the same inputs, or are not used."""


class JobOrder(Message):
    """The job to work on."""

    type: Literal["order"] = "order"
    kind: JobKind
    run: SettledRun | None
    """Of a pass or an export, with the owner's references."""
    paths: dict[str, str]
    """The local files, by field."""
    analysis: AnalysisOrder | None
    device: str
    output: str
    """Directory for the result."""
    state: str
    """Directory for what lets the job continue in another process."""
    upto: int | None = None
    """For an export: the trial after which its pass ends."""
    labels: dict[str, answer_sheet.Answer] = {}
    """For an export of a model that labels certify: those, by the ids of rows."""
    points: float | None = None
    """What they certify it within, in hundredths; None without labels."""
    names: dict[str, str]
    """The owner's names for checkpoint and data, by field."""

    @property
    def settled(self) -> SettledRun:
        """The run of a pass or an export."""
        assert self.run is not None, "passes and exports have a run"
        return self.run

    @property
    def knobs(self) -> RunConfig:
        """The knobs; of an analysis how its data is read."""
        if self.analysis is None:
            return self.settled.knobs
        return make_config(knobs={"max_length": self.analysis.run.max_length})


class GoAhead(Message):
    """The worker has room for the memory that was estimated."""

    type: Literal["go_ahead"] = "go_ahead"


class StoredTrials(Message):
    """The next stored trials, in order."""

    type: Literal["replay"] = "replay"
    trials: tuple[Trial, ...]


class Begin(Message):
    """All stored trials have been sent; continue from there."""

    type: Literal["begin"] = "begin"


class Suspend(Message):
    """Wait after this trial."""

    type: Literal["suspend"] = "suspend"


class GoOn(Message):
    """Continue after a suspension."""

    type: Literal["go_on"] = "go_on"


class Restrictions(Message):
    """The restrictions that this system does not grant, and why. The launcher sends it before any work."""

    type: Literal["restrictions"] = "restrictions"
    refused: dict[str, Text]


class Ready(Message):
    """The libraries are imported."""

    type: Literal["ready"] = "ready"
    auto: Literal["cpu", "cuda"]
    """The device that ``auto`` means on this machine."""
    no_gpu: Text | None = None
    """Why PyTorch has no GPU, in its words; null where it has one."""
    host_bytes: Bytes | None = None
    """Main memory of the machine or container."""
    gpu_bytes: tuple[Bytes, ...] = ()
    """Memory of each GPU that PyTorch sees."""


class Memory(Message):
    """Bytes of main memory and of GPU memory."""

    host_bytes: Bytes
    device_bytes: Bytes


class MemoryEstimate(Message):
    """The memory that the job needs, estimated from its files' headers, and the memory of the machine."""

    type: Literal["memory_estimate"] = "memory_estimate"
    least: Memory
    at_ease: Memory
    total: Memory
    free: Memory
    fits: Memory
    """Main memory of the smallest machine without a GPU that it fits, and GPU memory of the smallest GPU."""
    parameters: Bytes
    data_bytes: Bytes
    largest: InputName
    """The input that takes most of it."""


class Shape(Message):
    """See :class:`axformer.plan.elements.Dimensions`; bounded by the largest model that intake admits."""

    layers: int = Field(ge=1, le=DIMENSIONS["num_hidden_layers"])
    heads: int = Field(ge=1, le=DIMENSIONS["num_attention_heads"])
    hidden_size: int = Field(ge=1, le=DIMENSIONS["hidden_size"])
    intermediate_size: int = Field(ge=1, le=DIMENSIONS["intermediate_size"])

    @property
    def dimensions(self) -> Dimensions:
        """The same values as the library's class."""
        return Dimensions(**self.model_dump())


class Opened(Message):
    """The model and the data are loaded, and fit each other."""

    type: Literal["opened"] = "opened"
    notes: Annotated[tuple[Text, ...], Field(max_length=_MOST_NOTES)]
    first_look: Text | None
    """One line on the validation data and, of a pass, the untouched model's figures; None for an export."""
    shape: Shape


class PlanSpeed(Message):
    """The speed of a plan, counted from shapes (:mod:`axformer.model.operations`)."""

    operations: Bytes
    """Operations that remain, for one forward pass over the data."""
    estimated_speedup: float = Field(ge=0, allow_inf_nan=False)
    """Operations of the untouched model divided by those that remain."""


class TrialMade(Message):
    """A new trial."""

    type: Literal["tried"] = "tried"
    trial: Trial
    speed: PlanSpeed | None
    """Speed of the plan after this trial; None if it is that of the trial before."""


class Working(Message):
    """What the process does between two trials or after the last one."""

    type: Literal["working"] = "working"
    step: Annotated[Step, AfterValidator(_storable_step)]


class Alive(Message):
    """The process is at work, inside a loop that may take long."""

    type: Literal["alive"] = "alive"


class Suspended(Message):
    """The process waits; no trial comes before ``go_on``."""

    type: Literal["suspended"] = "suspended"


class Searched(Message):
    """The search has ended; no more trials follow."""

    type: Literal["searched"] = "searched"
    note: Text | None
    kept: int = Field(ge=0)
    """The trial whose model is kept."""
    speed: PlanSpeed
    """Of that model."""


class Trained(Message):
    """All is done that comes before the files, such as training the model; they are written next."""

    type: Literal["trained"] = "trained"


class Published(Message):
    """The files of the result are written."""

    type: Literal["published"] = "published"
    report: dict[str, Any]


REFUSALS: dict[str, type[AxFormerError]] = {
    kind.__name__: kind
    for kind in (ConfigError, CheckpointError, DataError, PoorModelError, PlanError, InputError, ArtifactError)
}
"""The errors of the library that a job's owner is shown, each before the more general ones."""


def _known_refusal(name: str) -> str:
    if name not in REFUSALS:
        raise ValueError("is no refusal of the library")
    return name


class Refused(Message):
    """The library refuses the job's inputs."""

    type: Literal["refused"] = "refused"
    error: Annotated[str, AfterValidator(_known_refusal)]
    """A name of :data:`REFUSALS`."""
    message: Text


class Failed(Message):
    """Something else went wrong."""

    type: Literal["failed"] = "failed"
    reason: Reason
    detail: Annotated[str, StringConstraints(max_length=_LONGEST_TRACE), AfterValidator(_storable)]
    """For the operator."""


FROM_WORKER: TypeAdapter[JobOrder | GoAhead | StoredTrials | Begin | Suspend | GoOn] = TypeAdapter(
    Annotated[JobOrder | GoAhead | StoredTrials | Begin | Suspend | GoOn, Field(discriminator="type")]
)
Answer = (
    Restrictions
    | Ready
    | MemoryEstimate
    | Opened
    | TrialMade
    | Working
    | Alive
    | Suspended
    | Searched
    | Trained
    | Published
    | Refused
    | Failed
)
FROM_PROCESS: TypeAdapter[Answer] = TypeAdapter(Annotated[Answer, Field(discriminator="type")])


def cut(text: str, *, end: bool = False) -> str:
    """Cut a text to the length that may be sent, keeping its start or its end."""
    text = text.replace("\0", "").encode(errors="replace").decode()
    return text[-_LONGEST_TRACE:] if end else text[:_LONGEST_TEXT]


def storable_json(model: BaseModel) -> dict[str, Any]:
    """Convert a model to JSON that PostgreSQL can store.

    Raises:
        ValueError: it holds a number or a character that PostgreSQL cannot store.
    """
    text = json.dumps(model.model_dump(mode="json"), allow_nan=False)
    if "\\u0000" in text:
        raise ValueError("holds a character that PostgreSQL does not store")
    value: dict[str, Any] = json.loads(text, parse_int=_bounded)
    return value


def _bounded(digits: str) -> int:
    number = int(digits)
    if not -_MOST_NUMBER <= number <= _MOST_NUMBER:
        raise ValueError("holds an integer of more than 64 bits")
    return number
