"""The content of ``report.json``: what a pass did, measured before and after on the models themselves."""

from typing import Annotated, Any, Literal

from pydantic import Field

from axformer.wire import bounds
from axformer.wire.base import Schema
from axformer.wire.bounds import Anything, ElementId, Figures, Text, Word, at_most
from axformer.wire.data_summary import DataSummary, Refitted
from axformer.wire.finetuning import LossPoint
from axformer.wire.verdicts import Certificate, Finding, JudgedRows, Judgement, McNemarTest, TargetOutcome

Interval = tuple[float, float]
Intervals = Annotated[dict[Word, Interval], Field(max_length=bounds.FIGURES)]
REPORT_FORMAT: Literal["axformer-report/2"] = "axformer-report/2"


class Scores(Schema):
    """The scores of one model."""

    validation: Figures
    """Mean loss and the task's metrics on the validation data, which decided, or a part of it with `confirm`."""
    test: Figures | None
    """The same on held-out data; null where none was given."""
    validation_intervals: Intervals
    """The 95 % bootstrap interval of each figure over the samples, lower end first."""
    test_intervals: Intervals | None
    confirming: Figures | None = None
    """The same on the part of the validation data that confirmed; null where `confirm` is 0. It is among the rows of
    `validation`."""
    confirming_intervals: Intervals | None = None
    unlabelled: Figures | None = None
    """The same on the unlabelled rows that confirmed, against the untouched model's own answers, so that the share of right
    answers is that of answers that stay; null where none were given."""
    unlabelled_intervals: Intervals | None = None


class Measures(Scores):
    """The measurements of one model."""

    parameters: int
    encoder_parameters: int | None = None
    """Parameters of the transformer layers, including norms, with weights that layers share counted once: what the paper
    compresses. Null in reports of earlier versions alone."""
    bytes: int
    """Size of the weight files."""
    operations: int
    """Multiplications and additions of matrix products in one look at the validation data, counted from shapes."""
    encoder_operations: int | None = None
    """Operations of the transformer layers. Null only in reports of earlier versions."""
    latency_ms: float
    """Median milliseconds of a forward pass on the input in `latency`."""


class Difference(Schema):
    """The change of a figure: after minus before."""

    value: float
    interval: Interval
    """The 95 % interval of the paired bootstrap."""


class ClassChange(Schema):
    """One class before and after, among the decisions (samples; of a tagger, words) whose label it is."""

    name: Word
    count: int
    """Decisions with this label."""
    before: float
    """The share of them that the first model answers rightly: its recall."""
    after: float
    p_value: float
    """McNemar's exact test on them, times the number of classes (Bonferroni)."""


class Comparison(Schema):
    """The comparison of both models on one data set."""

    differences: Annotated[dict[Word, Difference], Field(max_length=bounds.FIGURES)]
    mcnemar: McNemarTest | None
    """Null if the task has no right and wrong, like a regression."""
    changed: int | None = None
    """Inputs whose answer is another one, right or wrong; null where answers are numbers or texts, and in reports of earlier
    versions."""
    classes: list[ClassChange] = Field(default=[], max_length=bounds.CLASSES)
    """What became of each class that the labels hold, the one that lost most first; empty where answers are no classes."""
    calibration: tuple[float, float] | None = None
    """The expected calibration error before and after: how far confidence lies from the share of right answers (Guo et al.,
    2017, equation 3, 15 bins). Null where answers are not one of several, and in reports of earlier versions."""
    calibrated: float | None = None
    """The error after, with the model's logits divided by ``temperature``; null on the validation rows too."""
    temperature: float | None = None
    """The best temperature on the validation rows (Guo et al., section 4.2); null with ``calibrated``."""
    tempered: Difference | None = None
    """The change of the loss with each model at its own best temperature: doubt alone is no gain. Null with ``calibrated``."""


class SpeedCell(Schema):
    """Speed on batches of one kind; all models of a report took turns, so their cells are comparable."""

    batch: int
    """Inputs computed together."""
    length: int | None
    """Tokens of each input; null for rows of the validation data, each of its own length and padded to the longest of its
    batch."""
    tokens: float
    """Mean tokens of an input that were computed, padding included."""
    p50_ms: float
    """Median milliseconds of a forward pass of one batch."""
    p95_ms: float
    """95th percentile of the milliseconds of a forward pass."""
    inputs_per_second: float
    """Inputs per second over all forward passes."""
    repeats: int
    """Number of timed forward passes."""
    times: float | None = None
    """How many times as fast as the untouched model, the median over turns on the same batch; null for that model itself, and
    in reports of earlier versions."""
    times_interval: Interval | None = None
    """The 95 % interval of it: the bootstrap over turns."""
    processor_share: float | None = None
    """Share of that time in which the calling thread had a processor: well below 1 on a busy machine, and somewhat below it
    where several threads wait for each other. Null on a GPU."""


class FormReport(Schema):
    """One form of a model, measured as loaded from its files. Figures that could not be measured are null."""

    name: Word
    made: bool
    reason: Text | None = None
    """Why it was not made; null if it was."""
    failed: bool = False
    """Whether it was written and failed its check, of which `reason` has the figure; false where the model has no such form."""
    directory: Word | None = None
    """Its directory in the result; null for the untouched model."""
    bytes: int | None = None
    """Size of the weight files."""
    load_seconds: float | None = None
    """Seconds that a fresh process took to load it, with the form's libraries imported before and the files in the system's
    cache; of the untouched model only a bench measures it."""
    idle_bytes: int | None = None
    """Most memory that this process had held with libraries imported and nothing loaded."""
    peak_bytes: int | None = None
    """Most memory that it held until one batch of real rows was computed, libraries included; memory of a GPU is not
    counted."""
    max_logit_difference: float | None = None
    """Largest absolute difference of any logit from the model in memory over the whole validation data."""
    validation: Figures | None = None
    """Mean loss and the task's metrics on the validation data."""
    validation_intervals: Intervals | None = None
    test: Figures | None = None
    """The same on held-out data; null where none was given, or nothing was measured."""
    test_intervals: Intervals | None = None
    confirming: Figures | None = None
    """The same on the rows that confirmed, where it is judged by them; else null."""
    unlabelled: Figures | None = None
    """The same on the unlabelled rows that confirmed, against the untouched model's answers, where it is judged by them; else
    null."""
    test_change: Comparison | None = None
    """On held-out data against the untouched model, sample by sample; null for the untouched model itself."""
    cost: Comparison | None = None
    """Against the untouched model on the data of `judged`, sample by sample; null for the untouched model itself, without such
    data, and in reports of earlier versions."""
    classes_answered: int | None = None
    """How many different classes it answers on that data; null where answers are no classes."""
    p_value: float | None = None
    """Of its own paired test on the confirming rows, that its metric fell by at least the points of `judged`, the largest of
    its sequence along the path if it has one; null without a certificate of the run. At most 0.05 certifies the form."""
    certificate: Certificate | None = None
    """Its own, tested along the path, where its answers are its own (int8) and points were to be certified; else null."""
    seq: int | None = None
    """The trial of the path whose model it holds, where its own certificate chose that; null if it is the model of the
    result."""
    judgement: Judgement | None = None
    """What the rows of `judged` show of it; null for the untouched model itself, and in reports of earlier versions."""
    change: Comparison | None = None
    """Against the compact form, sample by sample; null for the compact form itself."""
    speed: list[SpeedCell] = Field(default=[], max_length=bounds.POINTS)
    """One input and 32 at a time, of the validation data's own lengths; of a bench more batches and lengths."""


class Deployment(Schema):
    """Which form to deploy."""

    form: Word | None
    """Its name in `forms`, or in `before_forms` where `of_untouched`; null if none is advised."""
    of_untouched: bool = False
    """Whether it is a form of the untouched model, which needs no pruning."""
    directory: Word | None = None
    """In the result; null if it does not lie there."""
    times: tuple[float, float, float] | None = None
    """How many times as fast as the untouched model with one input: lower end, median, upper end."""
    change: tuple[float, float, float] | None = None
    """The change of the first metric on the data of `judged`: lower end, value, upper end."""
    certified: bool = False
    """Whether its own test certifies the points of `judged`."""
    by_pruning: float | None = None
    """How many times as fast as the untouched model in the same runtime; null where that was not measured."""
    sentence: Text
    """The advice for people."""


class DeployedPoint(Schema):
    """A model of a path in the form in which it would be deployed."""

    form: Word
    bytes: int
    """Size of its weight file."""
    milliseconds: float
    """Median for one input."""
    times: tuple[float, float, float]
    """How many times as fast as the untouched model in PyTorch with one input: lower end, median, upper end."""
    data: Word
    """The rows that it was measured on, by their name in `data`."""
    change: tuple[float, float, float]
    """The change of the first metric on them, as a difference of its values: lower end, value, upper end."""
    changed: float | None
    """The share of them whose answer is another one; null where answers are numbers or texts."""


class PathPoint(Schema):
    """A model on the path of a pass. Each contains the following ones, and `axformer apply --upto SEQ` writes any of them."""

    seq: int
    """The trial whose acceptance led to it; 0 is the untouched model."""
    element: ElementId | None
    """The accepted element; null for the untouched model."""
    loss: float
    """Mean loss on the deciding data, as in the trace."""
    deciding: Figures | None = None
    """Mean loss and the task's metrics on the deciding data, where trials are of whole plans; else null."""
    confirming: Figures | None
    """The same on the data that confirmed; null where `confirm` is 0."""
    unlabelled: Figures | None = None
    """The same on the unlabelled rows that confirmed, against the untouched model's answers; null where none were given."""
    test: Figures | None
    """The same on held-out data; null where none was given, or the pass had neither `confirm` nor `tolerance`."""
    parameters: int
    """Parameters that are left."""
    encoder_parameters: int | None = None
    """Parameters of the transformer layers; null in reports of earlier versions."""
    operations: int
    """Operations that are left, as in `base.operations`."""
    encoder_operations: int | None = None
    """Operations of the transformer layers; null in reports of earlier versions."""
    estimated_speedup: float
    """Operations of the untouched model divided by those that are left."""
    estimated_latency_ms: float | None = None
    """Milliseconds of a forward pass as `latency` says, estimated: those of the untouched model, by the operations that are
    left. Those of the finished model were measured, `pruned.latency_ms`. Null in reports of earlier versions alone."""
    kept: bool
    """Whether this is the result of the pass."""
    deployed: DeployedPoint | None = None
    """The same model in ONNX int8; null where that was not made, and in reports of earlier versions."""


class Work(Schema):
    """How the trials were measured, and at what cost."""

    trials_by_precision: Annotated[dict[Word, int], Field(max_length=bounds.FIGURES)]
    """Number of trials decided in each number format."""
    decided_early: int
    """Trials whose verdict was known before all samples were measured."""
    refused_by_safeguard: int | None = None
    """Trials that the paper's rule would have accepted and the safeguard did not; null without a safeguard."""
    peak_bytes: int
    """Peak memory of the process; other processes are not counted."""
    device_peak_bytes: int | None
    """Peak memory on its GPU; null on a CPU."""


class Finetuning(Schema):
    """The training after a pass; `pruned` is the model after it."""

    settings: Anything
    data: DataSummary
    seconds: float
    before: Scores
    """The pruned model as the pass left it."""
    steps: int | None = None
    """Steps that were trained; null in older reports."""
    epochs: int | None = None
    """Epochs that were trained, fewer than asked for if it ended early."""
    kept_epoch: int | None = None
    """The epoch whose weights were kept, from 1; 0 for the weights of before."""
    curve: tuple[LossPoint, ...] = Field(default=(), max_length=bounds.POINTS)
    """About 100 points, and one at the end of each epoch."""


class HeadTraining(Schema):
    """The new head of a base model, and its training. The trained model is the untouched one of the run."""

    task: Word
    labels: Annotated[tuple[Word, ...], Field(max_length=bounds.CLASSES)]
    """The names of the classes by index; empty for a task without classes."""
    base_sha256: Word
    """Digest of the weights of the base model."""
    directory: Word
    """Where the trained model lies in the result; `axformer apply` takes it."""
    settings: Anything
    data: DataSummary
    seconds: float
    steps: int
    epochs: int
    kept_epoch: int
    curve: tuple[LossPoint, ...] = Field(default=(), max_length=bounds.POINTS)


class Report(Schema):
    """What a pass did."""

    format: Literal["axformer-report/2"] = REPORT_FORMAT
    task: Word
    names: dict[Word, Text] = Field(default={}, max_length=bounds.SETS)
    """The inputs' names for people, by `checkpoint`, `validation`, `test`, `calibrate` and `train`: a reference to a hub as it
    was given, of other places the last part; empty in reports of earlier versions."""
    notes: list[Text] = Field(default=[], max_length=bounds.NOTES)
    """What was said of the inputs and of this machine before the run; empty in reports of earlier versions."""
    dtype: Word = "float32"
    """The number format of the checkpoint, which the result has too. Both were measured in it; the pass decided in float32, so
    losses of `path` and of the trace may differ a little from those of `base` and `pruned`."""
    base: Measures
    pruned: Measures
    one_position_ms: float | None = None
    """Median milliseconds of a forward pass of the untouched model in the class of the compact one, which computes the last
    layer at the one position that the head reads and removes nothing so; measured in turn with `base.latency_ms` and
    `pruned.latency_ms`. From the first to this is saved by that, from this to the last by what was removed. Null where the head
    reads all positions, and in reports of earlier versions."""
    estimated_speedup: float
    """Operations of the untouched model for each of the finished one; what came of it is in `forms`."""
    comparison: Annotated[dict[Word, Comparison | None], Field(max_length=bounds.SETS)]
    """`validation` and `test`, null where none was given; with `confirm` also `confirming`."""
    finding: Finding | None = None
    """Null in reports of earlier versions alone."""
    certificate: Certificate | None = None
    """Null where `within_points` was not asked for, and in reports of earlier versions."""
    doubt: Text | None = None
    """Why figures on held-out data, or what the confirming rows show, cannot be relied on, in sentences, from `data`. Null
    where nothing speaks against them, and in reports of earlier versions."""
    target: TargetOutcome | None = None
    """Null without `target_size` and `target_speedup`, and in reports of earlier versions."""
    int8: Anything | None = Field(default=None, exclude_if=lambda figures: figures is None)
    """Only in reports of earlier versions: figures in int8, in which a pass could decide."""
    removed: Annotated[list[ElementId], Field(max_length=bounds.ELEMENTS)]
    """Ids of removed elements, largest only, in the order of their removal."""
    hard_attention: Annotated[list[int], Field(max_length=bounds.LAYERS)]
    """Layers that have hard attention now."""
    trials: int
    seconds: float
    """Duration of the pass, without loading and packaging."""
    path: list[PathPoint] = Field(default=[], max_length=bounds.TRIALS)
    """Every acceptance of the pass; of a trained model as it was before the training."""
    work: Work
    refit: Refitted | None = None
    """What was fitted, with a method that fits; else null."""
    head: HeadTraining | None = None
    """Null where the checkpoint was fine-tuned already, and in reports of earlier versions."""
    finetune: Finetuning | None = None
    """Null where the model was not trained afterwards."""
    config: Annotated[dict[str, Any], at_most(bounds.KNOBS)]
    """Every knob."""
    data: Annotated[dict[Word, DataSummary | None], Field(max_length=bounds.SETS)]
    """`validation` and `test`, null where none was given; with `confirm` also `confirming`, a part of the first, and with
    unlabelled rows `unlabelled`, those of them that confirmed."""
    latency: Annotated[dict[Word, int], Field(max_length=bounds.SETS)]
    """Of `latency_ms`: inputs in a batch, tokens of an input, repeats."""
    base_form: FormReport
    """The untouched model, measured like the forms."""
    before_forms: list[FormReport] = Field(default=[], max_length=bounds.FORMS)
    """The untouched model in ONNX, measured like the forms, where the result has such forms and differs from it. They are not
    in the result; `axformer apply RESULT CHECKPOINT --upto 0` writes them."""
    judged: JudgedRows | None = None
    """Null in reports of earlier versions alone."""
    advice: Deployment | None = None
    """Null in reports of earlier versions alone."""
    forms: Annotated[list[FormReport], Field(max_length=bounds.FORMS)]
    """The forms in which the finished model can be deployed, and those not made."""
    environment: Anything
    """Versions and hardware that all figures here come from."""

    @property
    def is_trained(self) -> bool:
        """Whether a training made its weights: one that lowers no loss is not kept."""
        return self.finetune is not None and self.finetune.kept_epoch != 0
