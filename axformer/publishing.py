"""What a finished pass leaves behind: the model in its forms, measured and checked, with all that explains it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axformer.artifact import new_directory, write_texts
from axformer.config import PassConfig
from axformer.drawing.curve import CURVE, path_curve
from axformer.drawing.picture import picture
from axformer.forms.kinds import COMPACT
from axformer.forms.make import Finished, make_forms
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.methods.axformer.passes import Passes
from axformer.methods.axformer.targets import Targets
from axformer.plan.plan import PlanFile, PlanSource
from axformer.plan.trial import Trial
from axformer.repair.training import Trained
from axformer.reporting.card import PICTURE, write_card
from axformer.reporting.card_forms import loading_of
from axformer.reporting.measure import Outcome, make_report
from axformer.reporting.page import PAGE, report_page
from axformer.wire.report import Report


@dataclass(frozen=True)
class Decided:
    """A checkpoint, and what a pass over it has decided."""

    checkpoint: Checkpoint
    passes: Passes
    targets: Targets
    config: PassConfig
    """The knobs of the run, which may be of several passes."""

    @property
    def plan_file(self) -> PlanFile:
        """The plan, with the knobs of the very pass that led to it."""
        source = PlanSource(model_type=self.checkpoint.architecture.model_type, sha256=self.checkpoint.sha256)
        config = self.passes.config.model_dump(mode="json")
        return PlanFile(source=source, config=config, layers=self.passes.plan.layers)


def publish(
    decided: Decided,
    model: Any,
    trained: Trained | None,
    validation: DataSet,
    others: Mapping[str, DataSet | None],
    directory: Path,
    forms: Collection[str],
) -> Report:
    """Write the forms of a model, measure them, and write what stands beside them; nothing is left where any of it fails.

    Args:
        model: the compact model, trained or not.
        trained: what the training was; null where there was none.
        others: the rows that confirmed, and held-out data, by their names in reports.
        directory: it must not exist, or be empty.
        forms: of :data:`axformer.forms.kinds.KINDS`, made beside the compact one.

    Raises:
        InputError: the directory is not empty.
        ArtifactError: the compact form does not load in a fresh process, or computes something else.
    """
    checkpoint, passes = decided.checkpoint, decided.passes
    with new_directory(directory) as draft:
        finished = Finished(checkpoint, passes.plan, model, validation.samples, trained is not None)
        made = make_forms(finished, {COMPACT, *forms}, draft)
        finetuning = None if trained is None else trained.finetuning
        trace = tuple(passes.trace)
        outcome = Outcome(trace, passes.plan, model, made, decided.targets, passes.orders, passes.path, finetuning)
        report = make_report(checkpoint, outcome, validation, others, decided.config)
        write_texts(draft, texts_of(decided, report, trace))
    return report


def texts_of(decided: Decided, report: Report, trace: Sequence[Trial]) -> dict[str, str]:
    """What stands beside the model, by the name of its file."""
    plan, checkpoint = decided.plan_file, decided.checkpoint
    loading = loading_of(checkpoint.task, checkpoint.head)
    return {
        "plan.json": plan.model_dump_json(indent=1) + "\n",
        "trace.jsonl": "".join(trial.model_dump_json() + "\n" for trial in trace),
        "report.json": report.model_dump_json(indent=1) + "\n",
        "README.md": write_card(report, plan.plan, checkpoint.dimensions, loading),
        PICTURE: picture(plan.plan, checkpoint.dimensions),
        CURVE: path_curve(report.path),
        PAGE: report_page(report, plan, checkpoint.dimensions, trace, loading),
    }
