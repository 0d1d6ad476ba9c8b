"""Measure a model before and after a pass, for ``report.json``."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from axformer.config import RunConfig
from axformer.data.batches import Samples
from axformer.evaluation.int8 import in_int8
from axformer.evaluation.plain import Predictions, predict
from axformer.forms.form import Form, NotMade
from axformer.forms.kinds import COMPACT
from axformer.forms.memory import device_peak_bytes, peak_bytes
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.methods.outline import outline_of
from axformer.methods.targets import Targets
from axformer.model.compact import untouched
from axformer.model.number_format import computing_in, name_of
from axformer.plan.elements import Dimensions
from axformer.plan.plan import Plan, missing_from, removed_elements
from axformer.plan.trial import Phase, Trial, Verdict
from axformer.reporting.environment import describe
from axformer.reporting.findings import finding_of
from axformer.reporting.form_reports import HeldOut, measure_forms, stock_attention_in, summary
from axformer.reporting.look import doubt_about
from axformer.reporting.speed import HEADLINE, QUICK, measure_speed
from axformer.reporting.workloads import typical
from axformer.scores.scoring import Score, compare, score, score_of
from axformer.scores.sets import Sets, as_report, scores_on
from axformer.wire.data_summary import DataSummary
from axformer.wire.report import (
    Comparison,
    Finetuning,
    InInt8,
    Measures,
    OrderResult,
    PathPoint,
    Refitted,
    Report,
    Scores,
    Work,
)
from axformer.wire.verdicts import Certificate, Finding, TargetOutcome


@dataclass(frozen=True)
class Outcome:
    """A finished pass."""

    trace: Sequence[Trial]
    plan: Plan
    model: Any
    """The compact model in memory, in the number format it is saved in; all forms are compared with it."""
    forms: Sequence[Form | NotMade]
    """Its forms, including the compact one."""
    targets: Targets
    """Counts the parameters and operations that plans leave."""
    orders: Sequence[OrderResult] | None
    """The result of each order; None if the run had one pass."""
    path: Sequence[PathPoint]
    finetune: Finetuning | None = None
    """The model's figures before training; None if it was not trained."""
    refit: Refitted | None = None
    certificate: Certificate | None = None

    @property
    def accepted(self) -> list[Trial]:
        """The accepted trials up to the point that is kept."""
        kept = next(point.seq for point in self.path if point.kept)
        return [trial for trial in self.trace if trial.verdict is Verdict.ACCEPT and trial.seq <= kept]


@dataclass(frozen=True)
class BothScores:
    """The scores of both models in the checkpoint's number format, in which they are deployed. The pass decided in float32."""

    base: Mapping[str, Score | None]
    """Of the untouched model, on all data."""
    small: Mapping[str, Score | None]
    """Of the compact model, on all but the validation data, which its forms are checked on."""
    doubts: Mapping[str, str | None] = field(default_factory=dict)
    """Why figures on some data say nothing of new rows, by its name."""


def score_both(
    checkpoint: Checkpoint, small: Any, validation: DataSet, others: Sets, seen: Predictions | None = None
) -> BothScores:
    """Score both models.

    Args:
        small: the compact model.
        others: the confirming part of the validation data and the held-out data, by these names.
        seen: predictions of the untouched model on the validation data in the checkpoint's number format, if they are known.
    """
    base, task, samples = checkpoint.model, checkpoint.task, validation.samples
    of_base: dict[str, Score | None] = {}
    doubts: dict[str, str | None] = {}
    with computing_in(base, checkpoint.dtype), stock_attention_in(base):
        of_base["validation"] = score(base, task, samples) if seen is None else score_of(seen, task, samples)
        for name, data in others.items():
            of_base[name] = None
            if data is not None:
                predictions = predict(base, task, data.samples)
                of_base[name] = score_of(predictions, task, data.samples)
                doubts[name] = doubt_about(checkpoint, data, predictions) if name == "test" else None
    return BothScores(of_base, scores_on(small, task, others), doubts)


def doubted(scores: BothScores, doubts: Mapping[str, str]) -> BothScores:
    """The same scores with more reasons why some say nothing."""
    both = {name: [scores.doubts.get(name), doubts.get(name)] for name in {**scores.doubts, **doubts}}
    told = {name: "; ".join(filter(None, reasons)) or None for name, reasons in both.items()}
    return replace(scores, doubts=told)


def make_report(
    checkpoint: Checkpoint, outcome: Outcome, validation: DataSet, others: Sets, config: RunConfig, scores: BothScores
) -> Report:
    """Measure the speed of both models and of all forms, and write the report.

    Args:
        others: the confirming part of the validation data and the held-out data, by these names.
        scores: those of both models.

    Raises:
        ArtifactError: a form returns a value that is not a finite number.
    """
    base, small = checkpoint.model, outcome.model
    targets = outcome.targets
    allowed = _Allowed(None, True) if targets.is_chosen else _Allowed(config.within_points, config.expects_cost)
    sets = {"validation": validation, **others}
    with computing_in(base, checkpoint.dtype):
        latency = _latency(checkpoint, small, validation.samples)
        forms = measure_forms(
            *(checkpoint, small, outcome.forms, validation.samples),
            base_score=scores.base["validation"],
            held_out=_held_out(others.get("test"), scores),
            effort=QUICK,
        )
    base_scores, small_scores = scores.base, {"validation": forms.score} | dict(scores.small)
    comparison = _comparisons(base_scores, small_scores)
    summaries = {name: _summary(data, checkpoint, scores.doubts.get(name)) for name, data in sets.items()}
    int8 = _in_int8(checkpoint, small, sets) if config.evaluate_in == "int8" else None
    hard = [index for index, layer in enumerate(outcome.plan.layers) if layer.hard_attention is not None]
    name = checkpoint.task.name
    return Report(
        task=name,
        dtype=name_of(checkpoint.dtype),
        base=_measures(base, base_scores, checkpoint.bytes, targets, targets.full, latency.before),
        pruned=_measures(small, small_scores, _bytes_of_compact(outcome.forms), targets, outcome.plan, latency.after),
        one_position_ms=latency.one_position,
        estimated_speedup=targets.speedup(outcome.plan),
        comparison=comparison,
        finding=_finding(name, base_scores, small_scores, comparison, int8, allowed),
        certificate=outcome.certificate,
        doubt=_doubt(summaries),
        target=_target(targets, outcome.plan),
        int8=int8,
        removed=_removed(outcome, checkpoint.dimensions),
        hard_attention=hard,
        trials=len(outcome.trace),
        seconds=outcome.trace[-1].seconds,
        path=[_with_latency(point, latency.before) for point in outcome.path],
        work=_work(outcome.trace, config, str(base.device)),
        orders=None if outcome.orders is None else list(outcome.orders),
        finetune=outcome.finetune,
        refit=outcome.refit,
        config=config.model_dump(mode="json"),
        data=summaries,
        latency=latency.setting,
        base_form=forms.base,
        forms=forms.forms,
        environment=describe(str(base.device)),
    )


def _target(targets: Targets, plan: Plan) -> TargetOutcome | None:
    sentence = targets.note(plan)
    if sentence is None:
        return None
    return TargetOutcome(reached=targets.is_reached(plan), sentence=f"{sentence[0].upper()}{sentence[1:]}.")


def _held_out(data: DataSet | None, scores: BothScores) -> HeldOut | None:
    base, small = scores.base.get("test"), scores.small.get("test")
    return None if data is None or base is None or small is None else HeldOut(data.samples, base, small)


@dataclass(frozen=True)
class _Allowed:
    """What the model may cost."""

    points: float | None
    anything: bool
    """Whether a size, a speed or this very model was asked for, whatever it costs."""


def _finding(
    task: str,
    before: Mapping[str, Score | None],
    after: Mapping[str, Score | None],
    comparison: Mapping[str, Comparison | None],
    int8: InInt8 | None,
    allowed: _Allowed,
) -> Finding:
    """Judge whether the model is better, in the arithmetic that the pass used."""
    if int8 is not None:
        return finding_of(
            task,
            int8.base,
            int8.pruned,
            int8.comparison,
            in_int8=True,
            points=allowed.points,
            expects_cost=allowed.anything,
        )
    return finding_of(
        task,
        Scores(**as_report(before)),
        Scores(**as_report(after)),
        comparison,
        points=allowed.points,
        expects_cost=allowed.anything,
    )


def _removed(outcome: Outcome, dimensions: Dimensions) -> list[str]:
    """Ids of the largest removed elements, in the order of their removal; for whole plans, layer by layer."""
    if any(trial.plan is not None for trial in outcome.accepted):
        return [element.id for element in missing_from(outcome.plan, dimensions)]
    return removed_elements(str(trial.element) for trial in outcome.accepted if trial.phase is not Phase.HARD_ATTENTION)


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


def _with_latency(point: PathPoint, before: float) -> PathPoint:
    """Add the latency that the operations of a point suggest, given the untouched model's latency."""
    return point.model_copy(update={"estimated_latency_ms": before / point.estimated_speedup})


def _bytes_of_compact(forms: Sequence[Form | NotMade]) -> int:
    return next(form.bytes for form in forms if isinstance(form, Form) and form.name == COMPACT)


def _work(trace: Sequence[Trial], config: RunConfig, device: str) -> Work:
    return Work(
        trials_by_precision=dict(Counter(trial.precision for trial in trace)),
        decided_early=sum(trial.loss_is_bound for trial in trace),
        refused_by_safeguard=outline_of(config).refused_by_safeguard(trace, config),
        peak_bytes=peak_bytes(),
        device_peak_bytes=device_peak_bytes(device),
    )


def _in_int8(checkpoint: Checkpoint, small: Any, sets: Sets) -> InInt8:
    """Score both models in int8; quantization starts from float32."""
    with in_int8(checkpoint.model, checkpoint.architecture):
        base_scores = scores_on(checkpoint.model, checkpoint.task, sets)
    with computing_in(small, torch.float32), in_int8(small, checkpoint.architecture):
        small_scores = scores_on(small, checkpoint.task, sets)
    return InInt8(
        base=Scores(**as_report(base_scores)),
        pruned=Scores(**as_report(small_scores)),
        comparison=_comparisons(base_scores, small_scores),
    )


def _comparisons(before: Mapping[str, Score | None], after: Mapping[str, Score | None]) -> dict[str, Comparison | None]:
    return {name: _comparison(score, after[name]) for name, score in before.items()}


def _comparison(before: Score | None, after: Score | None) -> Comparison | None:
    return None if before is None or after is None else compare(before, after)


def _measures(
    model: Any, scores: Mapping[str, Score | None], size: int, targets: Targets, plan: Plan, latency_ms: float
) -> Measures:
    return Measures(
        **as_report(scores),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        encoder_parameters=targets.encoder_parameters(plan),
        bytes=size,
        operations=targets.operations(plan),
        encoder_operations=targets.encoder_operations(plan),
        latency_ms=latency_ms,
    )
