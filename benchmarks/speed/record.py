"""What the benchmark asks of a measuring process, what it gets back, and what it keeps of a set."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from axformer.plan.trial import Trial


class Record(BaseModel):
    """Plain data that can be written and read again."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Asked(Record):
    """One measurement."""

    step: str
    checkpoint: str
    """Its directory."""
    data: str
    """JSON Lines of the validation set."""
    device: str = "cpu"
    threads: int
    plans: dict[int, list[str]] = Field(default_factory=dict)
    """Evaluate these alone, each once: elements in the order they were changed, by the number of the trial. Empty: run the
    whole pass."""
    count: bool = False
    """Count floating-point operations, on one core; nothing is timed then."""
    by_kind: bool = False
    """Time the kernels one by one, on one core."""


class Evaluation(Record):
    """One plan over all samples."""

    seq: int
    """The number of the trial."""
    loss: float
    seconds: float


class Run(Record):
    """One measurement, done in a process of its own."""

    step: str
    seconds: float | None = None
    """Of the whole pass, with model, data and batches in memory; null where single trials were evaluated."""
    trials: list[Trial] = Field(default_factory=list)
    """Of the whole pass."""
    evaluations: list[Evaluation] = Field(default_factory=list)
    """Single trials."""
    flops: int | None = None
    """Of the whole pass, or of all evaluations together; a multiplication and an addition are two."""
    kinds: dict[str, float] = Field(default_factory=dict)
    """Seconds that kernels took by themselves, by kind."""
    loaded_bytes: int
    """Most memory that the process had held when model and data were ready."""
    peak_bytes: int
    """Most memory that it had held at the end."""
    device_peak_bytes: int | None = None
    """The same on the accelerator; null on a CPU."""
    rates: dict[str, float] = Field(default_factory=dict)
    """Matrix multiplications of the model's shapes right after it, in operations a second, by arithmetic."""


class Agreement(Record):
    """How a step's trials compare with those of a reference."""

    step: str
    reference: str
    trials: int
    same: int | None
    """Trials with the same element and verdict; null where single trials were evaluated, and losses alone are compared."""
    loss_difference: float | None
    """Largest relative difference of the mean losses, over trials that both measured to the end and in one precision; null
    where there is none."""


class SetResult(Record):
    """All that was measured on one set, or on its cut."""

    name: str
    title: str
    rows: int
    is_whole: bool
    """All rows of the set, so that its targets apply."""
    tokens: int
    """Of all rows together, without padding."""
    trace: list[Trial]
    """The pass, as the reference of the agreements had it."""
    rounds: list[list[Run]]
    flops: dict[str, int]
    """Of a whole pass, by step."""
    agreements: list[Agreement]
    alone: dict[str, Run] = Field(default_factory=dict)
    """Passes on one core with their kernels timed one by one, by step."""


class Result(Record):
    """What one run of the benchmark found on one set, or on its cut."""

    command: str
    environment: dict[str, Any]
    minutes: float
    """All measurements together."""
    set: SetResult
