"""A form along the path, in which answers are its own, as in int8: measured, and certified as the model in memory was.

A form that is tested only at the model that others chose by the same rows is certified too often. So it has a sequence of its
own: the models of the path in their order, at 5 %, up to the first that fails. A path of many steps is thinned beforehand, by
operations alone. Inputs are answered one at a time, since int8 has one scale for all activations of a batch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from axformer.data.batches import Samples
from axformer.forms.form import Form
from axformer.forms.make import Finished, loaded_form
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.methods.confirmation import CONFIRMING, UNLABELLED, MeasuredPath
from axformer.methods.targets import Targets
from axformer.model.number_format import cast, computing_in
from axformer.plan.path import Point
from axformer.plan.plan import Plan
from axformer.reporting.form_reports import one_by_one, stock_attention_in
from axformer.reporting.speed import QUICK, measure_speed
from axformer.reporting.workloads import limits_of, own_workloads
from axformer.scores.answer_sheets import AnsweringModel, ConfirmingRows, sheet_of
from axformer.scores.certificate import certify, certify_sheet
from axformer.scores.decisions import cost_of
from axformer.scores.labelling import Labels, p_value_of
from axformer.scores.measured import Measured, measure
from axformer.scores.paired_tests import ALPHA
from axformer.scores.planning import POINT
from axformer.scores.task_tests import paired_test
from axformer.wire.answer_sheet import AnswerSheet
from axformer.wire.metrics import judging_metric
from axformer.wire.report import DeployedPoint, Report
from axformer.wire.steps import Counter, OnStep, StepName, ignore
from axformer.wire.verdicts import Certificate

MOST_TESTED = 8
"""Most models of a path whose form is tested."""
SHORT = 4
"""A path of at most so many models is measured to its end, also where no further model can be certified."""


@dataclass(frozen=True)
class FormPath:
    """A form along the path."""

    kept: Point
    """The model that is certified in this form; the untouched one if none is."""
    certificate: Certificate
    p_value: float
    """The largest of the sequence up to the kept model, or, if none is certified, of the first."""
    sheet: AnswerSheet | None
    """Its answers; None without unlabelled rows."""
    deployed: Mapping[int, DeployedPoint]
    """What was measured, by trial."""
    files: Mapping[Plan, Path]
    """The directory of each model's form, by plan; see :func:`axformer.forms.make.loaded_form`."""


@dataclass(frozen=True)
class FormPaths:
    """The forms that were certified along the path."""

    paths: Mapping[str, FormPath]
    """By name."""
    plan: Plan
    """Of the result."""

    @property
    def elsewhere(self) -> set[str]:
        """The forms that hold another model of the path than the result."""
        return {name for name, path in self.paths.items() if path.kept.seq and path.kept.plan != self.plan}

    def written(self, plan: Plan) -> dict[str, Path]:
        """The directories with forms of a model."""
        return {name: path.files[plan] for name, path in self.paths.items() if plan in path.files}

    def in_report(self, report: Report) -> Report:
        """The report with what was certified of each form."""
        forms = [
            form.model_copy(
                update={
                    "certificate": path.certificate,
                    "p_value": path.p_value,
                    "seq": path.kept.seq if form.name in self.elsewhere else None,
                }
            )
            if form.made and (path := self.paths.get(form.name)) is not None
            else form
            for form in report.forms
        ]
        deployed = {seq: one for path in self.paths.values() for seq, one in path.deployed.items()}
        points = [point.model_copy(update={"deployed": deployed.get(point.seq)}) for point in report.path]
        return report.model_copy(update={"forms": forms, "path": points})


@dataclass(frozen=True)
class TestedRows:
    """The rows that certify, and what they are to show."""

    sets: Mapping[str, DataSet]
    """By their names in reports: confirming, unlabelled."""
    points: float
    labels: Labels
    """Those that people gave."""


def certify_form(
    name: str,
    path: MeasuredPath,
    targets: Targets,
    checkpoint: Checkpoint,
    model_of: Callable[[Plan], Any],
    samples: Samples,
    tested: TestedRows,
    scratch: Path,
    on_step: OnStep = ignore,
    whole: Form | None = None,
) -> FormPath:
    """Measure a form along a path, and certify it.

    Args:
        targets: counts operations.
        model_of: builds the compact model of a plan.
        samples: real inputs, by which the form is made.
        scratch: a directory for the files of all models, which stay there.
        on_step: takes reports of how many models are tested.
        whole: the form of the untouched model, if it is there.
    """
    points = thinned(path.points, targets)
    sets = {which: one_by_one(data, checkpoint) for which, data in tested.sets.items()}
    judge = _Judge(name, [path.untouched[which] for which in sets], sets, tested, checkpoint)
    counter = Counter(StepName.PATH, len(points) - 1, on_step)
    data = next(iter(sets))
    made, files = dict[int, tuple[Form, Measured]](), dict[Plan, Path]()
    if whole is not None:
        made[points[0].seq] = whole, measure(whole.model, checkpoint.task, sets[data].samples)
    is_certifying = True
    for point in points[1:]:
        model = cast(model_of(point.plan), checkpoint.dtype)
        files[point.plan] = scratch / str(point.seq)
        form = loaded_form(Finished(checkpoint, point.plan, model, samples), name, files[point.plan])
        answers = [measure(form.model, checkpoint.task, data.samples) for data in sets.values()]
        made[point.seq] = form, answers[0]
        counter.advance(detail=f"measuring {name} of trial {point.seq}")
        if is_certifying:
            answering = AnsweringModel(point.seq, name, targets.speedup(point.plan), answers)
            is_certifying = judge.goes_on(answering)
        if not is_certifying and len(points) > SHORT + 1:
            break
    certificate = judge.certificate()
    kept = next(point for point in path.points if point.seq == certificate.kept)
    deployed = _deployed(made, (data, path.untouched[data]), checkpoint, samples)
    return FormPath(kept, certificate, judge.p_value, judge.sheet, deployed, files)


def _deployed(
    made: Mapping[int, tuple[Form, Measured]], before: tuple[str, Measured], checkpoint: Checkpoint, samples: Samples
) -> dict[int, DeployedPoint]:
    """What a form is worth at each model of a path, all speeds in turns with the untouched model.

    Args:
        made: the forms and what they answer, by trial.
        before: the rows that they answer, by their name in reports, and the untouched model on them.
        samples: real inputs for the speeds.
    """
    data, untouched = before
    limits = limits_of(
        checkpoint.head, checkpoint.model.config, checkpoint.architecture.max_tokens(checkpoint.model.config)
    )
    loads = own_workloads(samples.encoded, checkpoint.tokenizer, limits, [1])
    with stock_attention_in(checkpoint.model), computing_in(checkpoint.model, checkpoint.dtype):
        _, *cells = measure_speed([checkpoint.model, *(form.model for form, _ in made.values())], loads, QUICK)
    found = {}
    for (seq, (form, answers)), (cell,) in zip(made.items(), cells, strict=True):
        cost = cost_of(untouched, answers, ())
        difference = cost.differences[judging_metric(untouched.figures, data)]
        assert cell.times is not None, "it is not the first"
        assert cell.times_interval is not None, "as above"
        found[seq] = DeployedPoint(
            form=form.name,
            bytes=form.bytes,
            milliseconds=cell.p50_ms,
            times=(cell.times_interval[0], cell.times, cell.times_interval[1]),
            data=data,
            change=(difference.interval[0], difference.value, difference.interval[1]),
            changed=None if cost.changed is None else cost.changed / int(untouched.samples.voters.sum()),
        )
    return found


class _Judge:
    """Tests one model after another."""

    def __init__(
        self,
        name: str,
        untouched: Sequence[Measured],
        sets: Mapping[str, DataSet],
        tested: TestedRows,
        checkpoint: Checkpoint,
    ) -> None:
        self._name, self._untouched, self._tested, self._checkpoint = name, untouched, tested, checkpoint
        self._rows = ConfirmingRows(sets.get(CONFIRMING), sets[UNLABELLED]) if UNLABELLED in sets else None
        self._models: list[AnsweringModel] = []
        self._values: list[float] = []

    @property
    def p_value(self) -> float:
        """The largest p-value of the models that passed, or of the first that was tested."""
        return max(takewhile(lambda value: value <= ALPHA, self._values), default=self._values[0])

    @property
    def sheet(self) -> AnswerSheet | None:
        """The answers of the models so far."""
        if self._rows is None:
            return None
        config = self._checkpoint.model.config
        return sheet_of(self._rows, self._untouched, self._models, config, self._tested.points)

    def goes_on(self, model: AnsweringModel) -> bool:
        """Take the next model, and say whether one more may be certified, with further labels perhaps."""
        self._models.append(model)
        sheet, margin, labels = self.sheet, self._tested.points * POINT, self._tested.labels
        if sheet is None:
            self._values.append(self._test.p_value(model.answers[0].votes))
            return self._values[-1] <= ALPHA
        self._values.append(p_value_of(sheet, sheet.models[-1], labels, margin))
        return p_value_of(sheet, sheet.models[-1], labels, margin, is_worst=False) <= ALPHA

    def certificate(self) -> Certificate:
        """The certificate of what was tested."""
        sheet = self.sheet
        if sheet is not None:
            return certify_sheet(sheet, self._name, self._tested.labels)
        models = [0, *(model.seq for model in self._models)]
        costs = [1.0, *(1 / model.times for model in self._models)]
        tables = [self._untouched[0].votes, *(model.answers[0].votes for model in self._models)]
        return certify(tables, self._test, self._tested.points, models, costs)[1]

    @property
    def _test(self) -> Any:
        return paired_test(self._untouched[0].votes, self._checkpoint.task, self._tested.points)


def thinned(points: Sequence[Point], targets: Targets) -> list[Point]:
    """At most :data:`MOST_TESTED` points besides the first, chosen without a look at any answer: those at which the operations
    first fall below even steps between the first and the last."""
    if len(points) <= MOST_TESTED + 1:
        return list(points)
    left = [1 / targets.speedup(point.plan) for point in points]
    chosen = []
    for step in range(1, MOST_TESTED + 1):
        bound = left[0] + (left[-1] - left[0]) * step / MOST_TESTED
        chosen.append(next((index for index, share in enumerate(left) if share <= bound), len(points) - 1))
    return [points[0], *(points[index] for index in dict.fromkeys(chosen))]


def together(one: AnswerSheet, other: AnswerSheet) -> AnswerSheet:
    """The answers of further models on the same rows beside those of a sheet."""
    changed = {row.place: row for sheet in (other, one) for row in sheet.changed}
    return one.model_copy(
        update={"changed": [changed[place] for place in sorted(changed)], "models": [*one.models, *other.models]}
    )
