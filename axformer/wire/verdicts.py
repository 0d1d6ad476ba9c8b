"""What a result is judged to be, in ``report.json``: whether it is better, reaches its target, and is certified."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Judgement(StrEnum):
    """Whether the finished model is better, judged on data that did not decide."""

    GAIN = "gain"
    NO_RELIABLE_GAIN = "no_reliable_gain"
    WITHIN_LIMIT = "within_limit"
    AT_A_COST = "at_a_cost"
    LOSS = "loss"
    NOT_MEASURED = "not_measured"


class Finding(BaseModel):
    """Whether the finished model is better, in one line."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: Literal["test", "confirming"] | None = Field(
        description="The data it was measured on: held-out data, or else the rows that confirmed; null if there were none."
    )
    verdict: Judgement = Field(
        description="`loss` where the 95 % interval of the loss's change lies above 0, or more answers became wrong than right "
        "(McNemar's p at most 0.05), or the first metric, where it is another than the share of right answers, became worse by "
        "its whole interval; but `within_limit` where a smaller model was asked for within some points of the metric, and the "
        "metric fell by no more than these, and `at_a_cost` where a size or a speed was asked for whatever it costs. Else "
        "`gain` where the loss's interval lies below 0, `no_reliable_gain` where it holds 0 or no more than rounding, "
        "`not_measured` without such data."
    )
    sentence: str = Field(
        description="The same for people, with figures; those of `int8` where the pass decided in int8, and then it says so."
    )
    advice: str = Field(description="Advice that follows the sentence; may be empty.")
    answers: str = Field(
        description="How many answers changed between right and wrong, and McNemar's p-value, where a task knows such a thing; "
        "and how far the first metric fell, where it did so reliably and is another than the share of right answers."
    )


class TargetOutcome(BaseModel):
    """Whether the finished model is as small or fast as it was to be."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reached: bool
    sentence: str = Field(description="The same for people, with figures.")


class Certificate(BaseModel):
    """The certificate of the kept model: a bound on the fall of its metric, from rows that did not decide."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    points: float = Field(description="The metric fell by less than this many hundredths (`within_points`).")
    level: float = Field(
        description="Confidence: at most 1 minus this share of data sets certify a model that fell further."
    )
    rows: int = Field(description="Number of confirming rows.")
    metric: str = Field(description="The metric that is certified.")
    test: Literal["exact", "betting", "bca_bootstrap"] = Field(
        description="`exact`: the exact unconditional test of right and wrong answers. `betting`: the paired betting test of "
        "differences of any size. `bca_bootstrap`: for metrics that are no means over rows."
    )
    asymptotic: bool = Field(
        description="Whether the level holds only approximately, on many rows, instead of exactly."
    )
    order: Literal["path", "deciding"] = Field(
        description="The order of the tests, fixed beforehand: along the path. Reports of earlier versions may say `deciding`, "
        "which is safest first by the deciding rows."
    )
    tested: int = Field(description="Models that were tested; the first that fails ends it.")
    passed: int = Field(description="Models that passed; the cheapest of them is kept.")
    kept: int = Field(description="The trial whose acceptance led to the kept model; 0 is the untouched one.")
    p_value: float | None = Field(
        description="Of the model that is kept; null where it is the untouched one. A search of orders of an earlier version "
        "counted it six times."
    )
    reason: str | None = Field(description="Why no smaller model was kept; null if every model passed.")
    before_training: bool = Field(
        default=False,
        description="Whether the model was trained afterwards; the certificate is about the model before.",
    )
    sentence: str = Field(description="The certificate in one sentence.")
