"""Publishes the result of a finished pass: the model in its forms, measured and checked, with its plan, trace and reports."""

import json
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from axformer.artifact import new_directory, write_texts
from axformer.config import RunConfig
from axformer.drawing.curve import CURVE, path_curve
from axformer.drawing.picture import picture
from axformer.errors import FormError
from axformer.forms.form import Form, NotMade, Written
from axformer.forms.kinds import COMPACT, HUB, ONNX_INT8
from axformer.forms.make import Finished, make_before, make_forms, python_for, usual_forms
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.methods.confirmation import CONFIRMING, UNLABELLED
from axformer.methods.decisions import Decisions
from axformer.model.number_format import cast
from axformer.new_head import UNTOUCHED, Headed
from axformer.plan.plan import Plan, PlanFile, PlanSource, said_repaired
from axformer.repair.refit import Refit, refitted
from axformer.repair.storage import write_refit
from axformer.repair.training import Repaired
from axformer.reporting.advice import with_advice
from axformer.reporting.card import CARD, PICTURE, write_card
from axformer.reporting.card_forms import loading_of
from axformer.reporting.form_path import FormPaths, TestedRows, certify_form, together
from axformer.reporting.form_reports import summary
from axformer.reporting.measure import BothMeasured, doubted, make_report, measure_both
from axformer.reporting.page import PAGE, report_page
from axformer.scores.certificate import before_training
from axformer.scores.labelling import Labels, needed_lines
from axformer.scores.measured import Measured, Sets
from axformer.scores.planning import USUAL_POINTS
from axformer.wire.answer_sheet import NEEDED, SHEET, AnswerSheet
from axformer.wire.data_summary import Refitted
from axformer.wire.metrics import EMBEDDING
from axformer.wire.report import HeadTraining, Report
from axformer.wire.run import Run
from axformer.wire.steps import Counter, OnStep, StepName, ignore

RUN = "run.json"
"""The run as it was asked for, in a result."""


@dataclass(frozen=True)
class Decided:
    """A checkpoint, and the decisions of a pass over it."""

    checkpoint: Checkpoint
    decisions: Decisions
    config: RunConfig
    names: Mapping[str, str] = field(default_factory=dict)
    """The inputs' names for people; see :attr:`axformer.wire.report.Report.names`."""
    headed: Headed | None = None
    """The base model with its trained head, which is handed out too; None for a fine-tuned checkpoint."""
    doubts: Mapping[str, str] = field(default_factory=dict)
    """Why figures on some data do not hold for new rows, by the data's name in reports."""
    notes: Sequence[str] = ()
    """What was said before the run."""
    run: Run | None = None
    """The run as it was asked for; None where nobody asked in these words, as in a test."""
    allowed: float | None = None
    """The points that are certified; None where nothing is."""
    labels: Labels = field(default_factory=dict)
    """What people said of unlabelled rows."""

    def plan_file(self, *, is_fitted: bool, is_trained: bool) -> PlanFile:
        """The plan, with the knobs that led to it."""
        source = PlanSource(model_type=self.checkpoint.architecture.model_type, sha256=self.checkpoint.sha256)
        config = self.config.model_dump(mode="json")
        file = PlanFile(source=source, config=config, layers=self.decisions.plan.layers)
        return said_repaired(file, is_fitted=is_fitted, is_trained=is_trained)


@dataclass(frozen=True)
class Made:
    """The model to publish, and the changes to its weights."""

    model: Any
    """The compact model, in the number format of the checkpoint."""
    repaired: Repaired | None
    """The result of a repair after the run; None if there was none."""
    fits: Refit | None
    """The weights that were fitted in closed form; None if none were."""
    calibration: DataSet | None = None
    """Separate data that the weights were fitted on; None if they were fitted on the deciding rows."""

    files: Mapping[str, str] = field(default_factory=dict)
    """The contents of the files that the method adds to the usual ones, by name."""
    model_of: Callable[[Plan], Any] | None = None
    """Builds the compact model of another plan of the path; None where that is not known."""
    before: Sequence[Form | NotMade] | None = None
    """The untouched model in ONNX; None if that is not made yet."""
    both: BothMeasured | None = None
    """Both models on the data, with all doubts; None if they are not measured yet."""

    @property
    def is_trained_after(self) -> bool:
        """Whether the model was trained after the path was measured, so that no certificate of the path is of it."""
        return self.repaired is not None and not self.repaired.is_measured

    @property
    def refitted(self) -> Refitted | None:
        """The summary of the refit for the report."""
        record = refitted(self.fits)
        if record is None or self.calibration is None:
            return record
        return record.model_copy(update={"data": summary(self.calibration)})


def publish(
    decided: Decided,
    made: Made,
    validation: DataSet,
    others: Sets,
    directory: Path,
    forms: Collection[str],
    seen: Measured | None = None,
    on_step: OnStep = ignore,
) -> Report:
    """Write the forms of a model, measure them, and write the files next to them. If anything fails, nothing is left behind.

    Args:
        made: the model.
        others: the confirming rows and held-out data, by their names in reports.
        directory: a directory that is empty or does not exist.
        forms: names from :data:`axformer.forms.kinds.KINDS`, made in addition to the usual ones of the plan.
        seen: the untouched model on the validation data in the checkpoint's number format; None if it was not measured.
        on_step: takes reports of how far the work is.

    Raises:
        InputError: the directory is not empty.
        ArtifactError: no form passed its check in a fresh process.
    """
    checkpoint, plan = decided.checkpoint, decided.decisions.plan
    names = {*usual_forms(plan, checkpoint.dimensions), *forms}
    steps = Counter(StepName.PACKAGING, len(names) + 2, on_step)
    with new_directory(directory) as draft, python_for(checkpoint, COMPACT) as python, TemporaryDirectory() as scratch:
        steps.begin("measuring both models")
        # The fresh process does its imports while both models are measured.
        both = made.both or doubted(measure_both(checkpoint, made.model, validation, others, seen), decided.doubts)
        is_trained = made.repaired is not None
        more = [data.samples for data in others.values() if data is not None]
        finished = Finished(checkpoint, plan, made.model, validation.samples, made.fits, is_trained, more=more)
        is_whole = plan == Plan.full(checkpoint.dimensions) and not is_trained
        before = made.before
        if before is None and (not is_whole or decided.decisions.measured is not None):
            before = make_before(checkpoint, names, validation.samples)
        along = _along_path(decided, replace(made, before=before), names, validation, others, Path(scratch))
        finished = replace(finished, written={} if is_trained else along.written(plan))
        forms_made = make_forms(finished, names - along.elsewhere, draft, {COMPACT: python}, steps)
        forms_made += _of_other_plans(along, decided, made, validation, draft)
        written = Written(forms_made, [] if is_whole and not along.elsewhere else before or [])
        if made.fits is not None:
            write_refit(made.fits, draft)
        steps.advance(detail="measuring the speed of all forms")
        certificate = decided.decisions.certificate
        if certificate is not None and made.is_trained_after:
            certificate = before_training(certificate)
        report = make_report(
            *(checkpoint, decided.decisions, made.model, written, validation, others, decided.config, both),
            None if decided.run is None else decided.run.at_most,
            decided.labels,
            certificate,
        )
        around = {
            "finetune": None if made.repaired is None else made.repaired.record,
            "refit": made.refitted,
            "names": dict(decided.names),
            "notes": list(decided.notes),
            "head": _handed_out(decided.headed, draft),
        }
        report = with_advice(along.in_report(report.model_copy(update=around)))
        texts = {**texts_of(decided, report, is_fitted=made.fits is not None), **made.files}
        answers = answers_of(decided.decisions.sheet, along, decided.labels, report, made.is_trained_after)
        write_texts(draft, texts | answers)
    return report


def answers_of(
    sheet: AnswerSheet | None, along: FormPaths, labels: Labels, report: Report, is_trained_after: bool
) -> dict[str, str]:
    """The files that a certificate with few labels follows from; none without unlabelled rows, or where nobody labels."""
    if sheet is None or sheet.task == EMBEDDING:
        return {}
    for path in along.paths.values():
        if path.sheet is not None:
            sheet = together(sheet, path.sheet)
    assert report.judged is not None, "every new report has it"
    sheet = sheet.model_copy(update={"points": report.judged.points, "before_training": is_trained_after})
    return {SHEET: sheet.model_dump_json() + "\n", NEEDED: needed_lines(sheet, labels)}


def _along_path(
    decided: Decided, made: Made, names: Collection[str], validation: DataSet, others: Sets, scratch: Path
) -> FormPaths:
    """The forms with answers of their own, certified along the path; none where nothing was to be certified or asked for."""
    measured, plan, targets = decided.decisions.measured, decided.decisions.plan, decided.decisions.targets
    sets = {
        name: data
        for name in (CONFIRMING, UNLABELLED)
        if name not in decided.doubts and (data := others.get(name)) is not None
    }
    if measured is None or made.model_of is None or ONNX_INT8 not in names or made.is_trained_after or not sets:
        return FormPaths({}, plan)
    if len(measured.points) < 2 or (measured.certificate is None and measured.sheet is None):
        return FormPaths({}, plan)
    at_most = None if decided.run is None else decided.run.at_most
    tested = TestedRows(sets, at_most or decided.allowed or USUAL_POINTS, decided.labels)
    try:
        found = certify_form(
            *(ONNX_INT8, measured, targets, decided.checkpoint, made.model_of, validation.samples, tested, scratch),
            whole=next((one for one in made.before or () if isinstance(one, Form) and one.name == ONNX_INT8), None),
        )
    except FormError:
        return FormPaths({}, plan)  # this model has no such form, as the form itself says
    return FormPaths({ONNX_INT8: found}, plan)


def _of_other_plans(
    along: FormPaths, decided: Decided, made: Made, validation: DataSet, draft: Path
) -> list[Form | NotMade]:
    """The forms that hold another model of the path than the result."""
    checkpoint, forms = decided.checkpoint, []
    for name in along.elsewhere:
        assert made.model_of is not None, "forms were certified by it"
        plan = along.paths[name].kept.plan
        model = cast(made.model_of(plan), checkpoint.dtype)
        other = Finished(checkpoint, plan, model, validation.samples, written=along.written(plan))
        forms += make_forms(other, {name}, draft)
    return forms


def _handed_out(headed: Headed | None, draft: Path) -> HeadTraining | None:
    """Put the trained base model beside the forms, since the plan is its own; returns the record for the report."""
    if headed is None:
        return None
    shutil.copytree(headed.directory, draft / UNTOUCHED)
    return headed.record


def texts_of(decided: Decided, report: Report, *, is_fitted: bool) -> dict[str, str]:
    """The contents of the files next to the model, by file name."""
    checkpoint, trace = decided.checkpoint, decided.decisions.trace
    plan = decided.plan_file(is_fitted=is_fitted, is_trained=report.is_trained)
    loading = loading_of(checkpoint.task, checkpoint.head)
    asked = {} if decided.run is None else {RUN: json.dumps(decided.run.given(), indent=1) + "\n"}
    told = (report, plan, checkpoint.dimensions, loading, decided.run)
    in_hub = (
        {CARD: write_card(*told, inside=HUB), **asked} if any(form.directory == HUB for form in report.forms) else {}
    )
    return {
        **asked,
        **{f"{HUB}/{name}": text for name, text in in_hub.items()},
        "plan.json": plan.model_dump_json(indent=1) + "\n",
        "trace.jsonl": "".join(trial.model_dump_json() + "\n" for trial in trace),
        "report.json": report.model_dump_json(indent=1) + "\n",
        CARD: write_card(*told),
        PICTURE: picture(plan.plan, checkpoint.dimensions),
        CURVE: path_curve(report.path),
        PAGE: report_page(report, plan, checkpoint.dimensions, trace, loading),
    }
