"""What the benchmark of speed asks of a measuring process, and what it gets back."""

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
    threads: int
    plans: dict[int, list[str]] = Field(default_factory=dict)
    """Evaluate these alone, each once: elements in the order they were changed, by the number of the trial. Empty: run the
    whole pass."""
    count: bool = False
    """Count floating-point operations, on one core; nothing is timed then."""


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
    loaded_bytes: int
    """Most memory that the process had held when model and data were ready."""
    peak_bytes: int
    """Most memory that it had held at the end."""
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
    """Largest relative difference of the mean losses, over trials that both measured to the end; null where there is none."""
