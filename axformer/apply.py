"""Apply an existing plan to a checkpoint, and write its forms without another pass."""

from collections.abc import Collection, Sequence
from pathlib import Path

from axformer.artifact import new_directory
from axformer.config import reading_config
from axformer.data.reading import read_rows
from axformer.errors import PlanError
from axformer.forms.form import Form, NotMade
from axformer.forms.make import Finished, make_forms
from axformer.intake.checkpoint import Checkpoint, load_checkpoint
from axformer.intake.dataset import DataSource, prepare
from axformer.model.compact import compact
from axformer.model.number_format import cast
from axformer.plan.path import Stop, file_at
from axformer.plan.plan import PlanFile
from axformer.repair.refit import Refit, apply_refit, refit_plan
from axformer.repair.storage import write_refit


def apply_plan(
    file: PlanFile,
    checkpoint: str | Path,
    data: DataSource,
    output: Path,
    *,
    forms: Collection[str],
    stop: Stop | None = None,
    other_weights: bool = False,
    fits: Refit | None = None,
    device: str = "cpu",
) -> Sequence[Form | NotMade]:
    """Apply a plan to a checkpoint, and write each form in its own directory, and ``plan.json``.

    Args:
        file: the plan.
        checkpoint: a local directory, or ``hf://organisation/name``.
        data: real inputs; every form is compared on all of them with the model in memory.
        output: a directory that is empty or does not exist. If anything fails, nothing is left there.
        forms: names from :data:`axformer.forms.kinds.KINDS`.
        stop: a point on the path of the plan's pass; None for its end.
        other_weights: whether the checkpoint may have other weights than the plan was made with, for example after more
            fine-tuning.
        fits: the fitted weights stored with the plan; None if it has none. For another point on the path, or with other
            weights, the model is refitted, calibrated on ``data``.
        device: the device that PyTorch computes on.

    Returns:
        Each form, or why this model cannot have it.

    Raises:
        PlanError: the plan was made from other weights, or does not fit the model or the place on the path.
        InputError: something else does not fit.
        ArtifactError: the compact form does not load in a fresh process, or its outputs differ.
    """
    rows = read_rows(data.path, data.columns)
    loaded = load_checkpoint(checkpoint, device).for_rows(rows)
    check_source(file, loaded, other_weights=other_weights)
    kept = file.plan
    if stop is not None:
        file = file_at(file, stop, loaded.dimensions)
    samples = prepare(rows, loaded, reading_config(file.config)).samples
    if file.repair is not None and (fits is None or file.plan != kept or other_weights):
        fits = refit_plan(loaded.model, loaded.architecture, samples, file.plan)
    small = compact(loaded.model, loaded.architecture, file.plan)
    if fits is not None:
        apply_refit(small, loaded.architecture, fits)
    model = cast(small, loaded.dtype)
    with new_directory(output) as draft:
        made = make_forms(Finished(loaded, file.plan, model, samples, fits is not None), forms, draft)
        source = file.source.model_copy(update={"sha256": loaded.sha256})
        text = file.model_copy(update={"source": source}).model_dump_json(indent=1)
        if fits is not None:
            write_refit(fits, draft)
        (draft / "plan.json").write_text(f"{text}\n", encoding="utf-8")
    return made


def check_source(file: PlanFile, checkpoint: Checkpoint, *, other_weights: bool = False) -> None:
    """Check that a plan belongs to a checkpoint.

    Raises:
        PlanError: the plan was made from another model family, or from other weights and these are not allowed.
    """
    family = checkpoint.architecture.model_type
    if file.source.model_type != family:
        raise PlanError(f"the plan is of a model of type '{file.source.model_type}', the checkpoint is '{family}'")
    if not other_weights and file.source.sha256 != checkpoint.sha256:
        raise PlanError(
            f"the plan was made from weights with sha256 {file.source.sha256[:12]}..., the checkpoint's have "
            f"{checkpoint.sha256[:12]}...; take the checkpoint that the pass began with, or say --other-weights"
        )
    file.plan.check_fits(checkpoint.dimensions)
