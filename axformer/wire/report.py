"""The content of ``report.json``: what a pass did, measured before and after on the models themselves."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from axformer.wire.data_summary import DataSummary
from axformer.wire.finetuning import LossPoint
from axformer.wire.verdicts import Certificate, Finding, TargetOutcome

Interval = tuple[float, float]
REPORT_FORMAT: Literal["axformer-report/2"] = "axformer-report/2"


class Scores(BaseModel):
    """The scores of one model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    validation: dict[str, float] = Field(
        description="Mean loss and the task's metrics on the validation data, which decided, or a part of it with `confirm`."
    )
    test: dict[str, float] | None = Field(description="The same on held-out data; null where none was given.")
    validation_intervals: dict[str, Interval] = Field(
        description="The 95 % bootstrap interval of each figure over the samples, lower end first."
    )
    test_intervals: dict[str, Interval] | None
    confirming: dict[str, float] | None = Field(
        default=None,
        description="The same on the part of the validation data that confirmed; null where `confirm` is 0. It is among the "
        "rows of `validation`.",
    )
    confirming_intervals: dict[str, Interval] | None = None


class Measures(Scores):
    """The measurements of one model."""

    parameters: int
    encoder_parameters: int | None = Field(
        default=None,
        description="Parameters of the transformer layers, including norms, with weights that layers share counted once: "
        "what the paper compresses. Null in reports of earlier versions alone.",
    )
    bytes: int = Field(description="Size of the weight files.")
    operations: int = Field(
        description="Multiplications and additions of matrix products in one look at the validation data, counted from shapes."
    )
    encoder_operations: int | None = Field(
        default=None,
        description="Operations of the transformer layers. Null only in reports of earlier versions.",
    )
    latency_ms: float = Field(description="Median milliseconds of a forward pass on the input in `latency`.")


class Difference(BaseModel):
    """The change of a figure: after minus before."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float
    interval: Interval = Field(description="The 95 % interval of the paired bootstrap.")


class McNemarTest(BaseModel):
    """The samples whose answers became right or wrong, and McNemar's exact test on them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gained: int = Field(description="Wrong before, right after.")
    lost: int = Field(description="Right before, wrong after.")
    p_value: float


class Comparison(BaseModel):
    """The comparison of both models on one data set."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    differences: dict[str, Difference]
    mcnemar: McNemarTest | None = Field(description="Null if the task has no right and wrong, like a regression.")


class InInt8(BaseModel):
    """Both models computed in int8."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: Scores
    pruned: Scores
    comparison: dict[str, Comparison | None]


class SpeedCell(BaseModel):
    """Speed on batches of one kind; all models of a report took turns, so their cells are comparable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch: int = Field(description="Inputs computed together.")
    length: int | None = Field(
        description="Tokens of each input; null for rows of the validation data, each of its own length and padded to the "
        "longest of its batch."
    )
    tokens: float = Field(description="Mean tokens of an input that were computed, padding included.")
    p50_ms: float = Field(description="Median milliseconds of a forward pass of one batch.")
    p95_ms: float = Field(description="95th percentile of the milliseconds of a forward pass.")
    inputs_per_second: float = Field(description="Inputs per second over all forward passes.")
    repeats: int = Field(description="Number of timed forward passes.")
    processor_share: float | None = Field(
        default=None,
        description="Share of that time in which the calling thread had a processor: well below 1 on a busy machine, and "
        "somewhat below it where several threads wait for each other. Null on a GPU.",
    )


class FormReport(BaseModel):
    """One form of a model, measured as loaded from its files. Figures that could not be measured are null."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    made: bool
    reason: str | None = Field(default=None, description="Why it was not made; null if it was.")
    directory: str | None = Field(
        default=None, description="Its directory in the result; null for the untouched model."
    )
    bytes: int | None = Field(default=None, description="Size of the weight files.")
    load_seconds: float | None = Field(
        default=None,
        description="Seconds that a fresh process took to load it, with the form's libraries imported before and the files in "
        "the system's cache; of the untouched model only a bench measures it.",
    )
    idle_bytes: int | None = Field(
        default=None, description="Most memory that this process had held with libraries imported and nothing loaded."
    )
    peak_bytes: int | None = Field(
        default=None,
        description="Most memory that it held until one batch of real rows was computed, libraries included; memory of a GPU "
        "is not counted.",
    )
    max_logit_difference: float | None = Field(
        default=None,
        description="Largest absolute difference of any logit from the model in memory over the whole validation data.",
    )
    validation: dict[str, float] | None = Field(
        default=None, description="Mean loss and the task's metrics on the validation data."
    )
    validation_intervals: dict[str, Interval] | None = None
    test: dict[str, float] | None = Field(
        default=None, description="The same on held-out data; null where none was given, or nothing was measured."
    )
    test_intervals: dict[str, Interval] | None = None
    test_change: Comparison | None = Field(
        default=None,
        description="On held-out data against the untouched model, sample by sample; null for the untouched model itself.",
    )
    change: Comparison | None = Field(
        default=None, description="Against the compact form, sample by sample; null for the compact form itself."
    )
    speed: list[SpeedCell] = Field(
        default=[],
        description="One input and 32 at a time, of the validation data's own lengths; of a bench more batches and lengths.",
    )


class PathPoint(BaseModel):
    """A model on the path of a pass. Each contains the following ones, and `axformer apply --upto SEQ` writes any of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seq: int = Field(description="The trial whose acceptance led to it; 0 is the untouched model.")
    element: str | None = Field(description="The accepted element; null for the untouched model.")
    loss: float = Field(description="Mean loss on the deciding data, as in the trace.")
    deciding: dict[str, float] | None = Field(
        default=None,
        description="Mean loss and the task's metrics on the deciding data, where trials are of whole plans; else null.",
    )
    confirming: dict[str, float] | None = Field(
        description="The same on the data that confirmed; null where `confirm` is 0."
    )
    test: dict[str, float] | None = Field(
        description="The same on held-out data; null where none was given, or the pass had neither `confirm` nor `tolerance`."
    )
    parameters: int = Field(description="Parameters that are left.")
    encoder_parameters: int | None = Field(
        default=None,
        description="Parameters of the transformer layers; null in reports of earlier versions.",
    )
    operations: int = Field(description="Operations that are left, as in `base.operations`.")
    encoder_operations: int | None = Field(
        default=None, description="Operations of the transformer layers; null in reports of earlier versions."
    )
    estimated_speedup: float = Field(description="Operations of the untouched model divided by those that are left.")
    estimated_latency_ms: float | None = Field(
        default=None,
        description="Milliseconds of a forward pass as `latency` says, estimated: those of the untouched model, by the "
        "operations that are left. Those of the finished model were measured, `pruned.latency_ms`. Null in reports of earlier "
        "versions alone.",
    )
    kept: bool = Field(description="Whether this is the result of the pass.")


class Work(BaseModel):
    """How the trials were measured, and at what cost."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    trials_by_precision: dict[str, int] = Field(description="Number of trials decided in each number format.")
    decided_early: int = Field(description="Trials whose verdict was known before all samples were measured.")
    refused_by_safeguard: int | None = Field(
        default=None,
        description="Trials that the paper's rule would have accepted and the safeguard did not; null without a safeguard.",
    )
    peak_bytes: int = Field(description="Peak memory of the process; other processes are not counted.")
    device_peak_bytes: int | None = Field(description="Peak memory on its GPU; null on a CPU.")


class Finetuning(BaseModel):
    """The training after a pass; `pruned` is the model after it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: dict[str, Any]
    data: DataSummary
    seconds: float
    before: Scores = Field(description="The pruned model as the pass left it.")
    steps: int | None = Field(default=None, description="Steps that were trained; null in older reports.")
    epochs: int | None = Field(
        default=None, description="Epochs that were trained, fewer than asked for if it ended early."
    )
    kept_epoch: int | None = Field(default=None, description="The epoch whose weights were kept, from 1.")
    curve: tuple[LossPoint, ...] = Field(default=(), description="About 100 points, and one at the end of each epoch.")


class HeadTraining(BaseModel):
    """The new head of a base model, and its training. The trained model is the untouched one of the run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str
    labels: tuple[str, ...] = Field(description="The names of the classes by index; empty for a task without classes.")
    base_sha256: str = Field(description="Digest of the weights of the base model.")
    directory: str = Field(description="Where the trained model lies in the result; `axformer apply` takes it.")
    settings: dict[str, Any]
    data: DataSummary
    seconds: float
    steps: int
    epochs: int
    kept_epoch: int
    curve: tuple[LossPoint, ...] = ()


ENOUGH_TOKENS = 10
"""Calibration tokens for each unknown of a fit; fewer are told. With 3.7 MPNet-base lost a point more on held-out rows than on
those that it was calibrated with."""


class Refitted(BaseModel):
    """The weights that were fitted in closed form to what the untouched model computes, without labels."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    blocks: int = Field(description="Blocks whose output projection was fitted.")
    bias_only: int = Field(
        description="Blocks of which only the bias was fitted, because more would not have held on other tokens."
    )
    tokens: int = Field(description="Calibration tokens.")
    tokens_per_unknown: float | None = Field(
        description="Calibration tokens for each weight of an output, in the block that has the fewest, also where only its "
        "bias was fitted; null where no block has columns left."
    )
    data: DataSummary | None = Field(
        default=None,
        description="The rows of `calibrate`, whose labels were not looked at; null where those that decide calibrated.",
    )

    @property
    def has_few_tokens(self) -> bool:
        """Whether more rows would help."""
        return self.tokens_per_unknown is not None and self.tokens_per_unknown < ENOUGH_TOKENS


class Report(BaseModel):
    """What a pass did."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["axformer-report/2"] = REPORT_FORMAT
    task: str
    names: dict[str, str] = Field(
        default={},
        description="The inputs' names for people, by `checkpoint`, `validation`, `test`, `calibrate` and `train`: a reference "
        "to a hub as it was given, of other places the last part; empty in reports of earlier versions.",
    )
    dtype: str = Field(
        default="float32",
        description="The number format of the checkpoint, which the result has too. Both were measured in it; the pass decided "
        "in float32 or int8, so losses of `path` and of the trace may differ a little from those of `base` and `pruned`.",
    )
    base: Measures
    pruned: Measures
    one_position_ms: float | None = Field(
        default=None,
        description="Median milliseconds of a forward pass of the untouched model in the class of the compact one, which "
        "computes the last layer at the one position that the head reads and removes nothing so; measured in turn with "
        "`base.latency_ms` and `pruned.latency_ms`. From the first to this is saved by that, from this to the last by what was "
        "removed. Null where the head reads all positions, and in reports of earlier versions.",
    )
    estimated_speedup: float = Field(
        description="Operations of the untouched model for each of the finished one; what came of it is in `forms`."
    )
    comparison: dict[str, Comparison | None] = Field(
        description="`validation` and `test`, null where none was given; with `confirm` also `confirming`."
    )
    finding: Finding | None = Field(default=None, description="Null in reports of earlier versions alone.")
    certificate: Certificate | None = Field(
        default=None,
        description="Null where `within_points` was not asked for, and in reports of earlier versions.",
    )
    doubt: str | None = Field(
        default=None,
        description="Why figures on held-out data, or what the confirming rows show, cannot be relied on, in sentences, from "
        "`data`. Null where nothing speaks against them, and in reports of earlier versions.",
    )
    target: TargetOutcome | None = Field(
        default=None,
        description="Null without `target_size` and `target_speedup`, and in reports of earlier versions.",
    )
    int8: InInt8 | None = Field(description="The same in int8 where the pass decided in it, else null.")
    removed: list[str] = Field(description="Ids of removed elements, largest only, in the order of their removal.")
    hard_attention: list[int] = Field(description="Layers that have hard attention now.")
    trials: int
    seconds: float = Field(description="Duration of the pass, without loading and packaging.")
    path: list[PathPoint] = Field(
        default=[], description="Every acceptance of the pass; of a trained model as it was before the training."
    )
    work: Work
    refit: Refitted | None = Field(default=None, description="What was fitted, with a method that fits; else null.")
    head: HeadTraining | None = Field(
        default=None,
        description="Null where the checkpoint was fine-tuned already, and in reports of earlier versions.",
    )
    finetune: Finetuning | None = Field(default=None, description="Null where the model was not trained afterwards.")
    config: dict[str, Any] = Field(description="Every knob.")
    data: dict[str, DataSummary | None] = Field(
        description="`validation` and `test`, null where none was given; with `confirm` also `confirming`, a part of the first."
    )
    latency: dict[str, int] = Field(description="Of `latency_ms`: inputs in a batch, tokens of an input, repeats.")
    base_form: FormReport = Field(description="The untouched model, measured like the forms.")
    forms: list[FormReport] = Field(
        description="The forms in which the finished model can be deployed, and those not made."
    )
    environment: dict[str, Any] = Field(description="Versions and hardware that all figures here come from.")
