"""Measure a model before and after a pass, for ``report.json``."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from axformer.config import RunConfig
from axformer.data.columns import OWN_ANSWERS
from axformer.data.labels import ClassNames
from axformer.forms.form import Form, Written
from axformer.forms.kinds import COMPACT
from axformer.forms.memory import device_peak_bytes, peak_bytes
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.methods.confirmation import CONFIRMING, UNLABELLED
from axformer.methods.decisions import Decisions
from axformer.methods.progress import meter_of
from axformer.methods.targets import Targets
from axformer.model.number_format import computing_in, name_of
from axformer.plan.elements import Dimensions
from axformer.plan.plan import Plan, missing_from, removed_elements
from axformer.plan.trial import Phase, Trial, Verdict
from axformer.reporting.environment import describe
from axformer.reporting.findings import finding_of
from axformer.reporting.form_reports import FormsMeasured, JudgedBy, measure_forms, stock_attention_in, summary
from axformer.reporting.look import doubt_about
from axformer.reporting.speed import QUICK
from axformer.reporting.standing import USELESS, judgement_of
from axformer.scores.answer_sheets import AnsweringModel, ConfirmingRows, sheet_of
from axformer.scores.decisions import classes_answered, cost_of
from axformer.scores.labelling import Labels, p_value_of
from axformer.scores.measured import Measured, Sets, as_report, compare, measure, measure_sets, tempered
from axformer.scores.planning import POINT, USUAL_POINTS, USUAL_POINTS_OF_A_WISH
from axformer.scores.task_tests import is_share_right, paired_test
from axformer.tasks.base import Task
from axformer.tasks.multi_label import MultiLabelClassification
from axformer.wire.data_summary import DataSummary
from axformer.wire.metrics import first_metric, judging_metric
from axformer.wire.report import Comparison, Measures, PathPoint, Report, Work
from axformer.wire.verdicts import Certificate, JudgedRows, TargetOutcome


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
    written: Written,
    validation: DataSet,
    others: Sets,
    config: RunConfig,
    both: BothMeasured,
    at_most: float | None = None,
    labels: Labels = MappingProxyType({}),
    certificate: Certificate | None = None,
) -> Report:
    """Measure the speed of both models and of all forms, and write the report.

    Args:
        decisions: the trials of the run, and what follows from them.
        small: the compact model in memory, in the number format it is saved in; all forms are compared with it.
        written: its forms, at least one of them made.
        others: the confirming part of the validation data and the held-out data, by these names.
        both: both models on the data.
        at_most: the points that a form may cost to be advised; None for what goes with the knobs.
        labels: those that people gave for unlabelled rows.
        certificate: that of the path. Where the model was trained since, it says so, and certifies no form.

    Raises:
        ArtifactError: a form returns a value that is not a finite number.
    """
    base, targets = checkpoint.model, decisions.targets
    trace, plan, path = decisions.trace, decisions.plan, decisions.path
    sets = {"validation": validation, **others}
    summaries = {name: _summary(data, checkpoint, both.doubts.get(name)) for name, data in sets.items()}
    judged = _judged(checkpoint.task, decisions, sets, both, summaries, at_most)
    with computing_in(base, checkpoint.dtype):
        found = measure_forms(
            *(checkpoint, small, written, sets, both.base, both.small),
            _judged_by(judged, checkpoint, both, others, certificate, labels),
            QUICK,
        )
    latency = _latency(found)
    of_small = {"validation": found.in_memory, **both.small}
    of_base = _measures(base, both.base, checkpoint.bytes, targets, targets.full, latency.before)
    size = min(written.forms, key=lambda form: (not isinstance(form, Form), form.name != COMPACT))
    assert isinstance(size, Form), "without any form there is no report"
    of_pruned = _measures(small, of_small, size.bytes, targets, plan, latency.after)
    comparison = _comparisons(sets, both.base, of_small)
    hard = [index for index, layer in enumerate(plan.layers) if layer.hard_attention is not None]
    return Report(
        task=checkpoint.task.name,
        dtype=name_of(checkpoint.dtype),
        base=of_base,
        pruned=of_pruned,
        one_position_ms=latency.one_position,
        estimated_speedup=targets.speedup(plan),
        comparison=comparison,
        finding=finding_of(
            *(checkpoint.task.name, of_base, of_pruned, comparison),
            points=None if targets.is_chosen or config.within_points is None else float(config.within_points),
            expects_cost=targets.is_chosen or config.expects_cost,
            is_constant=_is_constant(found.in_memory, both.base["validation"]),
        ),
        certificate=certificate,
        doubt=_doubt(summaries),
        target=_target(targets, plan),
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
        base_form=found.base,
        before_forms=found.before,
        judged=judged,
        forms=found.forms,
        environment=describe(str(base.device)),
    )


def is_useless(
    checkpoint: Checkpoint, decisions: Decisions, sets: Sets, both: BothMeasured, own: Measured, at_most: float | None
) -> bool:
    """Whether the report of a run without a certificate will call a model useless; otherwise as :func:`make_report`.

    Args:
        sets: the validation and the held-out data, by these names.
        own: the model on the validation data.
    """
    summaries = {name: _summary(data, checkpoint, both.doubts.get(name)) for name, data in sets.items()}
    judged = _judged(checkpoint.task, decisions, sets, both, summaries, at_most)
    if judged.data is None:
        return False
    base, small = both.base[judged.data], {"validation": own, **both.small}[judged.data]
    before, after = ({judged.data: one.figures, "classes_answered": classes_answered(one)} for one in (base, small))
    cost = cost_of(base, small, ClassNames.of(checkpoint.model.config).names).model_dump(mode="json")
    return (
        judgement_of({**after, "cost": cost}, before, judging_metric(base.figures, judged.data), judged).standing
        in USELESS
    )


def _is_constant(small: Measured, base: Measured) -> bool:
    answered, before = classes_answered(small), classes_answered(base)
    is_one = not isinstance(small.task, MultiLabelClassification)  # where each class is an answer of its own
    return is_one and answered == 1 and before is not None and before > 1


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


def _judged(
    task: Task,
    decisions: Decisions,
    sets: Sets,
    both: BothMeasured,
    data: Mapping[str, DataSummary | None],
    at_most: float | None,
) -> JudgedRows:
    """What forms are judged by: the least biased rows against whose labels nothing speaks."""
    validation, config = data["validation"], decisions.targets.config
    decides = config.about.uses_labels or validation is None or validation.labels_as == OWN_ANSWERS
    order = ("test", "confirming", *(() if decides else ("validation",)), "unlabelled")
    name = next((one for one in order if (found := data.get(one)) is not None and found.doubt is None), None)
    summary, rows = (None, None) if name is None else (data[name], sets[name])
    certificate = decisions.certificate
    metric = first_metric(both.base["validation"].figures)
    is_first = name is None or judging_metric(both.base[name].figures, name) == metric
    usual = USUAL_POINTS_OF_A_WISH if decisions.targets.is_wished or config.expects_cost else USUAL_POINTS
    return JudgedRows(
        data=name,
        rows=0 if rows is None else int(rows.samples.voters.sum()),
        is_share=is_share_right(task.name) and is_first,
        points=certificate.points if certificate is not None and at_most is None else at_most or usual,
        guess=None if summary is None or summary.guess is None else summary.guess.get(metric),
    )


def _judged_by(
    judged: JudgedRows,
    checkpoint: Checkpoint,
    both: BothMeasured,
    others: Sets,
    certificate: Certificate | None,
    labels: Labels,
) -> JudgedBy:
    config, points = checkpoint.model.config, judged.points
    names = ClassNames.of(config).names
    tested = [name for name in (CONFIRMING, UNLABELLED) if name in others and both.doubts.get(name) is None]
    if certificate is None or certificate.before_training or not tested:
        return JudgedBy(judged, names)
    unlabelled = others.get(UNLABELLED)
    if unlabelled is None:
        test = paired_test(both.base[CONFIRMING].votes, checkpoint.task, points)
        return JudgedBy(judged, names, lambda form: test.p_value(form[CONFIRMING].votes), tested)
    rows = ConfirmingRows(others.get(CONFIRMING) if CONFIRMING in tested else None, unlabelled)

    def p_value(form: Mapping[str, Measured]) -> float:
        model = AnsweringModel(0, "", 1.0, [form[name] for name in tested])
        sheet = sheet_of(rows, [both.base[name] for name in tested], [model], config, points)
        return p_value_of(sheet, sheet.models[0], labels, points * POINT)

    return JudgedBy(judged, names, p_value, tested)


@dataclass(frozen=True)
class _Latency:
    """Median milliseconds with one input of the data's own lengths."""

    setting: dict[str, int]
    """Batch size, tokens and repeats."""
    before: float
    one_position: float | None
    """The untouched model in the compact model's class; None if that class computes the same."""
    after: float


def _latency(found: FormsMeasured) -> _Latency:
    """The headline, from the cells that were measured in turns."""
    before = found.base.speed[0]
    after = min(found.forms, key=lambda form: (not form.made, form.name != COMPACT)).speed[0]
    setting = {"batch": before.batch, "tokens": round(before.tokens), "repeats": before.repeats}
    between = found.one_position
    return _Latency(setting, before.p50_ms, None if between is None else between.p50_ms, after.p50_ms)


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


def _comparisons(
    sets: Sets, before: Mapping[str, Measured], after: Mapping[str, Measured]
) -> dict[str, Comparison | None]:
    found: dict[str, Comparison | None] = {
        name: compare(before[name], after[name]) if name in before else None for name in sets
    }
    first, second = before["validation"].best_temperature, after["validation"].best_temperature
    if first is None or second is None:
        return found
    for name, comparison in found.items():
        if comparison is not None and comparison.calibration is not None and name != "validation":
            told = {
                "calibrated": after[name].calibration_error(second),
                "temperature": second,
                "tempered": tempered(before[name], after[name], (first, second)),
            }
            found[name] = comparison.model_copy(update=told)
    return found


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
