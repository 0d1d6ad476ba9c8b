"""A trial: one element tried, its effect on the validation loss, and the verdict. One line of ``trace.jsonl``."""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from axformer.plan.plan import LayerPlan


def _no_number(value: Any) -> Any:
    """Read null as what JSON has no number for, and is written as null."""
    return math.nan if value is None else value


class Phase(StrEnum):
    """The phase of the pass that a trial belongs to."""

    BASE = "base"
    HARD_ATTENTION = "hard_attention"
    LAYER = "layer"
    BLOCK = "block"
    HEAD = "head"
    NEURONS = "neurons"
    TRADE = "trade"
    """Elements tried again after the gains, with ``tolerance``."""
    BUDGET = "budget"
    """A whole plan within a budget, with ``method=compress``."""
    RANK = "rank"
    """A whole plan after a step, with ``method=rank``."""
    LAYER_DROP = "layer_drop"
    """A whole plan with fewer layers, with ``method=layers``."""


class Verdict(StrEnum):
    """The decision on an element. ``refine`` keeps it and tries its parts next."""

    BASE = "base"
    ACCEPT = "accept"
    REFINE = "refine"
    REJECT = "reject"


class Milliseconds(BaseModel):
    """How long a block takes with one input of median length, at each of its sizes, all heads or neurons first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    attention: tuple[float, ...]
    ffn: tuple[float, ...]
    whole: float | None = None
    """Of the whole model; null in traces of earlier versions."""


class BlockLevels(BaseModel):
    """What the level table says of one block."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    leaving: tuple[int, ...]
    """All heads or neurons, in the order in which they leave."""
    divergences: tuple[float, ...]
    """Mean divergence of the predictions in nats, with this block alone cut, at each of its sizes, all units first."""


class ModelFigures(BaseModel):
    """What the model of a whole plan does on the validation samples that decide, and what it takes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metrics: dict[str, float]
    """Mean loss and the task's metrics."""
    parameters: int = Field(ge=0)
    encoder_parameters: int = Field(ge=0)
    operations: int = Field(ge=0)
    """For one forward pass over the data, as ``operations`` of the report."""
    encoder_operations: int = Field(ge=0)


class Trial(BaseModel):
    """One record of a pass; the field names are the same in the trace file, in the database and in the API."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _without_band(cls, fields: Any) -> Any:
        """Traces of earlier versions also say how far losses in low precision may be off."""
        if isinstance(fields, Mapping) and "loss_band" in fields:
            return {name: value for name, value in fields.items() if name != "loss_band"}
        return fields

    seq: int = Field(ge=0, description="Number of the trial in its pass; 0 is the untouched model.")
    phase: Phase
    element: str | None = Field(
        description="Id of the element tried, or of a whole plan (`encoder.0.5`); null for the base."
    )
    loss: Annotated[float, BeforeValidator(_no_number)] = Field(
        description="Mean loss over the validation samples, or the bound that decided; null where it is no finite number."
    )
    loss_is_bound: bool = Field(description="True where the loss is a bound, because the trial was decided early.")
    helped: int | None = Field(description="Samples whose loss went down against the reference; null for the base.")
    samples: int = Field(ge=0, description="Samples evaluated, of `total`.")
    total: int = Field(
        gt=0,
        description="Samples that are counted: one for each different input, and of hard attention those that it can change.",
    )
    min_loss: float = Field(description="Least loss before this trial.")
    verdict: Verdict
    precision: str = Field(
        default="float32", description="Number format that decided; others only in earlier versions."
    )
    parameters: int = Field(ge=0, description="Parameters that go if this element is removed.")
    seconds: float = Field(ge=0, description="Seconds since the pass began.")
    plan: tuple[LayerPlan, ...] | None = Field(
        default=None, description="What is left, layer by layer, where a trial is of a whole plan; else null."
    )
    milliseconds: Milliseconds | None = Field(
        default=None,
        description="What a block costs at each of its sizes, in the base trial of a run that chooses by latency; else null.",
    )
    levels: tuple[BlockLevels, ...] | None = Field(
        default=None,
        description="The level table, block by block, in the first trial that needed it, for runs that are resumed; else null.",
    )
    figures: ModelFigures | None = Field(
        default=None,
        description="Figures of the model where trials are of whole plans, from which a run's curve is drawn while it goes on; "
        "else null.",
    )
    frequency: float | None = Field(
        default=None,
        ge=0.0,
        le=1.0,
        description="Share of bootstrap draws of the rows in which the rule accepts, where it does with all rows and `stable` "
        "is asked for; else null.",
    )
