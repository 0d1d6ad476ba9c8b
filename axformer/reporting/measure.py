"""Measure a model before and after a pass, for ``report.json``."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from axformer.config import RunConfig
from axformer.data.batches import Samples
from axformer.evaluation.int8 import in_int8
from axformer.forms.form import Form, NotMade
from axformer.forms.kinds import COMPACT
from axformer.forms.memory import device_peak_bytes, peak_bytes
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.methods.decisions import Decisions
from axformer.methods.progress import meter_of
from axformer.methods.targets import Targets
from axformer.model.compact import untouched
from axformer.model.number_format import computing_in, name_of
from axformer.plan.elements import Dimensions
from axformer.plan.plan import Plan, missing_from, removed_elements
from axformer.plan.trial import Phase, Trial, Verdict
from axformer.reporting.environment import describe
from axformer.reporting.findings import finding_of
from axformer.reporting.form_reports import measure_forms, stock_attention_in, summary
from axformer.reporting.look import doubt_about
from axformer.reporting.speed import HEADLINE, QUICK, measure_speed
from axformer.reporting.workloads import typical
from axformer.scores.measured import Measured, Sets, as_report, compare, measure, measure_sets, scores_of
from axformer.wire.data_summary import DataSummary
from axformer.wire.report import Comparison, InInt8, Measures, PathPoint, Report, Work
from axformer.wire.verdicts import TargetOutcome


@dataclass(frozen=True)
class BothMeasured:
    """Both models, measured in the checkpoint's number format, in which they are deployed. The pass decided in float32."""

    base: Mapping[str, Measured]
    """The untouched model on all data, by its name in the report."""
    small: Mapping[str, Measured]
    """The compact model on all but the validation data, which its forms are checked on."""
    doubts: Mapping[str, str | None] = field(default_factory=dict)
    """Why figures on some data say nothing of new rows, by its name."""


def measure_both(
    checkpoint: Checkpoint, small: Any, validation: DataSet, others: Sets, seen: Measured | None = None
) -> BothMeasured:
    """Measure both models.

    Args:
        small: the compact model.
        others: the confirming part of the validation data and the held-out data, by these names.
        seen: the untouched model on the validation data in the checkpoint's number format, if it was measured.
    """
    base, task = checkpoint.model, checkpoint.task
    with computing_in(base, checkpoint.dtype), stock_attention_in(base):
        first = measure(base, task, validation.samples) if seen is None else seen
        of_base = {"validation": first, **measure_sets(base, task, others)}
    doubts = {"test": doubt_about(checkpoint, of_base["test"])} if "test" in of_base else {}
    return BothMeasured(of_base, measure_sets(small, task, others), doubts)


def doubted(both: BothMeasured, doubts: Mapping[str, str]) -> BothMeasured:
    """The same with more reasons why some say nothing."""
    reasons = {name: [both.doubts.get(name), doubts.get(name)] for name in {**both.doubts, **doubts}}
    return replace(both, doubts={name: "; ".join(filter(None, each)) or None for name, each in reasons.items()})


def make_report(
    checkpoint: Checkpoint,
    decisions: Decisions,
    small: Any,
    made: Sequence[Form | NotMade],
    validation: DataSet,
    others: Sets,
    config: RunConfig,
    both: BothMeasured,
) -> Report:
    """Measure the speed of both models and of all forms, and write the report.

    Args:
        decisions: the trials of the run, and what follows from them.
        small: the compact model in memory, in the number format it is saved in; all forms are compared with it.
        made: its forms, at least one of them made.
        others: the confirming part of the validation data and the held-out data, by these names.
        both: both models on the data.

    Raises:
        ArtifactError: a form returns a value that is not a finite number.
    """
    base, targets = checkpoint.model, decisions.targets
    trace, plan, path = decisions.trace, decisions.plan, decisions.path
    sets = {"validation": validation, **others}
    with computing_in(base, checkpoint.dtype):
        latency = _latency(checkpoint, small, validation.samples)
        in_memory, (base_form, *form_reports) = measure_forms(
            *(checkpoint, small, made, sets, both.base, both.small, QUICK)
        )
    of_small = {"validation": in_memory, **both.small}
    of_base = _measures(base, both.base, checkpoint.bytes, targets, targets.full, latency.before)
    size = min(made, key=lambda form: (not isinstance(form, Form), form.name != COMPACT))
    assert isinstance(size, Form), "without any form there is no report"
    of_pruned = _measures(small, of_small, size.bytes, targets, plan, latency.after)
    comparison = _comparisons(sets, both.base, of_small)
    summaries = {name: _summary(data, checkpoint, both.doubts.get(name)) for name, data in sets.items()}
    int8 = _in_int8(checkpoint, small, sets) if config.evaluate_in == "int8" else None
    hard = [index for index, layer in enumerate(plan.layers) if layer.hard_attention is not None]
    judged = (of_base, of_pruned, comparison) if int8 is None else (int8.base, int8.pruned, int8.comparison)
    return Report(
        task=checkpoint.task.name,
        dtype=name_of(checkpoint.dtype),
        base=of_base,
        pruned=of_pruned,
        one_position_ms=latency.one_position,
        estimated_speedup=targets.speedup(plan),
        comparison=comparison,
        finding=finding_of(
            *(checkpoint.task.name, *judged),
            in_int8=int8 is not None,
            points=None if targets.is_chosen else config.within_points,
            expects_cost=targets.is_chosen or config.expects_cost,
        ),
        certificate=decisions.certificate,
        doubt=_doubt(summaries),
        target=_target(targets, plan),
        int8=int8,
        removed=_removed(trace, plan, path, checkpoint.dimensions),
        hard_attention=hard,
        trials=len(trace),
        seconds=trace[-1].seconds,
        path=[
            point.model_copy(update={"estimated_latency_ms": latency.before / point.estimated_speedup})
            for point in path
        ],
        work=_work(trace, config, checkpoint),
        config=config.model_dump(mode="json"),
        data=summaries,
        latency=latency.setting,
        base_form=base_form,
        forms=form_reports,
        environment=describe(str(base.device)),
    )


def _target(targets: Targets, plan: Plan) -> TargetOutcome | None:
    sentence = targets.note(plan)
    if sentence is None:
        return None
    return TargetOutcome(reached=targets.is_reached(plan), sentence=f"{sentence[0].upper()}{sentence[1:]}.")


def _removed(trace: Sequence[Trial], plan: Plan, path: Sequence[PathPoint], dimensions: Dimensions) -> list[str]:
    """Ids of the largest removed elements, in the order of their removal; for whole plans, layer by layer."""
    kept = next(point.seq for point in path if point.kept)
    accepted = [trial for trial in trace if trial.verdict is Verdict.ACCEPT and trial.seq <= kept]
    if any(trial.plan is not None for trial in accepted):
        return [element.id for element in missing_from(plan, dimensions)]
    return removed_elements(str(trial.element) for trial in accepted if trial.phase is not Phase.HARD_ATTENTION)


def _doubt(data: Mapping[str, DataSummary | None]) -> str | None:
    """The doubts about held-out data and confirming rows in sentences; None if there are none."""
    sources = {"Figures on held-out data": "test", "What the confirming rows show": "confirming"}
    summaries = {what: data.get(name) for what, name in sources.items()}
    doubts = {what: one.doubt for what, one in summaries.items() if one is not None and one.doubt is not None}
    return " ".join(f"{what} cannot be relied on: {doubt}." for what, doubt in doubts.items()) or None


def _summary(data: DataSet | None, checkpoint: Checkpoint, doubt: str | None) -> DataSummary | None:
    if data is None:
        return None
    guess = checkpoint.task.guess(data.samples.encoded, checkpoint.model.config)
    return summary(data, guess).model_copy(update={"doubt": doubt})


@dataclass(frozen=True)
class _Latency:
    """Median milliseconds for one row of the median length."""

    setting: dict[str, int]
    """Batch size, tokens and repeats."""
    before: float
    one_position: float | None
    """The untouched model in the compact model's class; None if that class computes the same."""
    after: float


def _latency(checkpoint: Checkpoint, small: Any, samples: Samples) -> _Latency:
    """Measure all models in turn."""
    workload = typical(samples.encoded, checkpoint.tokenizer)
    twin = untouched(checkpoint.model, checkpoint.architecture)
    models = [checkpoint.model, small] if twin is None else [checkpoint.model, small, twin]
    with stock_attention_in(checkpoint.model):
        before, after, *between = (cells[0] for cells in measure_speed(models, [workload], HEADLINE))
    setting = {"batch": workload.batch, "tokens": round(workload.tokens), "repeats": before.repeats}
    return _Latency(setting, before.p50_ms, between[0].p50_ms if between else None, after.p50_ms)


def _work(trace: Sequence[Trial], config: RunConfig, checkpoint: Checkpoint) -> Work:
    meter, device = meter_of(checkpoint.dimensions, config), str(checkpoint.model.device)
    meter.add(trace)
    return Work(
        trials_by_precision=dict(Counter(trial.precision for trial in trace)),
        decided_early=sum(trial.loss_is_bound for trial in trace),
        refused_by_safeguard=meter.refused_by_safeguard,
        peak_bytes=peak_bytes(),
        device_peak_bytes=device_peak_bytes(device),
    )


def _in_int8(checkpoint: Checkpoint, small: Any, sets: Sets) -> InInt8:
    """Score both models in int8; quantization starts from float32."""
    with in_int8(checkpoint.model, checkpoint.architecture):
        before = measure_sets(checkpoint.model, checkpoint.task, sets)
    with computing_in(small, torch.float32), in_int8(small, checkpoint.architecture):
        after = measure_sets(small, checkpoint.task, sets)
    return InInt8(base=scores_of(before), pruned=scores_of(after), comparison=_comparisons(sets, before, after))


def _comparisons(
    sets: Sets, before: Mapping[str, Measured], after: Mapping[str, Measured]
) -> dict[str, Comparison | None]:
    return {name: compare(before[name], after[name]) if name in before else None for name in sets}


def _measures(
    model: Any, measured: Mapping[str, Measured], size: int, targets: Targets, plan: Plan, latency_ms: float
) -> Measures:
    return Measures(
        **as_report(measured),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        encoder_parameters=targets.encoder_parameters(plan),
        bytes=size,
        operations=targets.operations(plan),
        encoder_operations=targets.encoder_operations(plan),
        latency_ms=latency_ms,
    )
