"""Feature models from beginning to end: select dimensions, cut the encoder, fit the classifier, write and check everything."""

import tempfile
import time
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from axformer.analysis.advice import can_drop
from axformer.analysis.features import Selection, select
from axformer.analysis.inputs import AnalysisInputs
from axformer.analysis.labels import can_probe
from axformer.analysis.making import bounded, study_of
from axformer.analysis.redundancy import dimension_id, features_of
from axformer.analysis.study import ReportBounds, Study
from axformer.analyzing import analysis_of, texts_of
from axformer.artifact import new_directory, write_texts
from axformer.data.batches import Batch, Samples
from axformer.errors import ConfigError
from axformer.forms.agreement import compare_outputs
from axformer.forms.features import ENCODER, ONNX, FeatureModel, load_features, unpooled, write_features
from axformer.forms.files import write_model
from axformer.forms.onnx import write_onnx
from axformer.forms.onnx_model import OnnxModel
from axformer.forms.selfcheck import check_difference
from axformer.forms.stock import stock
from axformer.intake.checkpoint import Checkpoint
from axformer.model.compact import compact
from axformer.plan.plan import Plan
from axformer.reporting.form_reports import stock_attention_in
from axformer.reporting.speed import Effort, take_turns
from axformer.scores.measured import measure, measure_together
from axformer.surroundings import Surroundings
from axformer.wire.analysis import Reports
from axformer.wire.features import FeaturesFile, Speed

ROWS = 20_000
"""Rows of each data set unless fewer are asked for. What is deployed is worth more of them than a look at a model."""
TOLERANCE = 1e-3
"""Largest difference of an output as it is loaded from what is in memory, in float32 and in another runtime."""
_TIMED = 10
"""Batches whose forward passes are timed."""


def make_features(
    inputs: AnalysisInputs,
    output: Path,
    *,
    rows: int | None = None,
    onnx: bool = False,
    surroundings: Surroundings | None = None,
) -> FeaturesFile:
    """Make a feature model of a checkpoint, and write it. If anything fails, nothing is left behind.

    Args:
        inputs: the checkpoint with labelled rows to measure on and to learn from.
        output: a directory that is empty or does not exist.
        rows: most rows of each data set; None for 20,000.
        onnx: whether the model is written as ONNX too.
        surroundings: where it happens.

    Raises:
        ConfigError: the task has no labels that a linear classifier can learn, or there are no training rows.
        ArtifactError: what is loaded from the files computes something else.
        FormError: the model cannot be written as ONNX.
    """
    began = time.monotonic()
    if inputs.train is None or not can_probe(inputs.checkpoint.task):
        raise ConfigError(
            f"a feature model of {inputs.checkpoint.task.name.replace('_', ' ')}: its classifier learns from labelled training "
            "rows; give --train, and a model for classification, tagging or regression"
        )
    with tempfile.TemporaryDirectory(prefix="axformer-features-") as scratch:
        study = study_of(inputs, ReportBounds(rows=rows or ROWS), 0, Path(scratch), surroundings or Surroundings())
        selection = select(study)
        report = features_of(study, selection, began, inputs.given)
        reports = Reports(features=report)
        analysis = analysis_of(study, inputs, reports, list(bounded(study, inputs, reports)), began)
        with new_directory(output) as draft:
            write_texts(draft, texts_of(analysis))
            return _write(_Cut.of(study, selection), study, draft, onnx=onnx)


@dataclass(frozen=True)
class _Cut:
    """A shortened encoder with its classifier."""

    encoder: Any
    layers: int
    dimensions: tuple[str, ...]
    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, study: Study, selection: Selection) -> "_Cut":
        """Cut the encoder as low as a selection allows and transformers can build it."""
        checkpoint, whole = study.checkpoint, study.checkpoint.dimensions.layers
        lowest = max(1, selection.minimal.layers)
        depth = next((depth for depth in range(lowest, whole) if can_drop(checkpoint, range(depth, whole))), whole)
        linear = selection.measured.probe.linear
        names = tuple(dimension_id(place, study.data.states.hidden) for place in selection.dimensions)
        return cls(
            _encoder(checkpoint, depth), depth, names, torch.from_numpy(linear.weight), torch.from_numpy(linear.bias)
        )


def _encoder(checkpoint: Checkpoint, depth: int) -> Any:
    """The lowest layers of a model as an ordinary base model of its family, in float32."""
    architecture = checkpoint.architecture
    full = Plan.full(checkpoint.dimensions)
    plan = full.dropping(range(depth, len(full.layers))) if depth < len(full.layers) else full
    small = compact(checkpoint.model, architecture, plan)
    ordinary = stock(small, checkpoint.head.model_class, architecture, plan).cpu()
    base_class = architecture.base_class
    base = base_class(ordinary.config, **unpooled(base_class)).eval()
    weights = ordinary.base_model.state_dict()
    base.load_state_dict({name: weights[name] for name in base.state_dict()})
    return base


def _write(cut: _Cut, study: Study, draft: Path, *, onnx: bool) -> FeaturesFile:
    """Write a feature model into a directory, and check what is loaded from there."""
    checkpoint, samples = study.checkpoint, study.data.data.samples
    write_model(cut.encoder, checkpoint.companions, draft / ENCODER)
    facts = _facts(cut, study)
    model = FeatureModel(cut.encoder, facts, cut.weight, cut.bias).eval()
    value = _metric(model, study)
    facts = facts.model_copy(update={"value": value, "milliseconds": _speed(checkpoint, model, samples)})
    write_features(facts, cut.weight, cut.bias, draft)
    forms: dict[str, Any] = {"loaded": load_features(draft).model}
    if onnx:
        write_onnx(model, checkpoint.tokenizer, samples.encoded, draft)
        forms[ONNX] = OnnxModel(draft)
    _, agreements = compare_outputs(model, forms, checkpoint.task, samples)
    for name, agreement in agreements.items():
        check_difference(
            f"the feature model, {name}: its outputs over the data", agreement.difference, TOLERANCE, agreement.largest
        )
    return facts


def _facts(cut: _Cut, study: Study) -> FeaturesFile:
    checkpoint, labels = study.checkpoint, study.data.labels
    assert labels is not None, "a feature model has labels"
    config = checkpoint.model.config
    names = [str(config.id2label[index]) for index in range(labels.outputs)]
    parameters = sum(parameter.numel() for parameter in cut.encoder.parameters())
    return FeaturesFile(
        model_type=checkpoint.architecture.model_type,
        task=checkpoint.task.name,
        kind=labels.kind.value,
        reads="position" if checkpoint.task.pooled else "words",
        labels=tuple(names),
        layers=cut.layers,
        whole_layers=checkpoint.dimensions.layers,
        dimensions=cut.dimensions,
        max_length=study.config.max_length or checkpoint.architecture.max_tokens(config),
        padding_side=checkpoint.tokenizer.padding_side,
        parameters=parameters + cut.weight.numel() + cut.bias.numel(),
        whole_parameters=sum(parameter.numel() for parameter in checkpoint.model.parameters()),
        metric=study.metric,
        value=0.0,
        whole_value=study.model,
        milliseconds=Speed(whole=0.0, kept=0.0),
        sha256=checkpoint.sha256,
    )


def _metric(model: FeatureModel, study: Study) -> float:
    """The metric of a feature model on the rows that measure."""
    data, task = study.data, study.checkpoint.task
    samples = data.data.samples
    if task.pooled:
        return measure(model, task, samples).figures[study.metric]
    tags: list[Any] = [None] * len(data.states.counts)

    def see(_: str, output: Any, batch: Batch) -> None:
        """Take the answers where the classifier reads words, which is not where the task does."""
        answers = data.positions.read(batch, output.logits).argmax(dim=-1)
        for row, words in zip(batch.rows.tolist(), torch.split(answers, data.positions.counts(batch)), strict=True):
            tags[row] = words.tolist()

    measure_together({"features": model}, task, samples, see)
    return task.metrics(task.statistics(tags, samples.encoded))[study.metric]


def _speed(checkpoint: Checkpoint, model: FeatureModel, samples: Samples) -> Speed:
    """Milliseconds of a row in both models: the median over some batches spread over all lengths."""
    batches = samples.batches[:: max(1, len(samples.batches) // _TIMED)]
    effort = Effort(least=len(batches), most=len(batches), seconds=inf, warm_ups=1)
    with stock_attention_in(checkpoint.model):
        taken = take_turns([checkpoint.model, model], [batch.inputs for batch in batches], effort)
    rows = np.array([len(batch.rows) for batch in batches])
    whole, kept = (float(1000 * np.median(np.array([turn.seconds for turn in turns]) / rows)) for turns in taken)
    return Speed(whole=whole, kept=kept)
