"""Apply an existing plan to a checkpoint, and write its forms without another pass."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from axformer.artifact import new_directory
from axformer.config import config_class, fits_weights, method_of, reading_config
from axformer.data.columns import DataSource
from axformer.data.reading import read_rows
from axformer.errors import ConfigError, PlanError
from axformer.forms.form import Form, NotMade
from axformer.forms.make import Finished, make_forms, usual_forms
from axformer.intake.checkpoint import Checkpoint, load_checkpoint
from axformer.intake.dataset import DataSet, drawn_to_calibrate, prepare, prepare_inputs
from axformer.methods.base import made_by
from axformer.model.compact import compact
from axformer.model.number_format import cast
from axformer.opening import training_on
from axformer.plan.path import Stop, file_at
from axformer.plan.plan import PlanFile, said_repaired
from axformer.repair.refit import Refit, apply_refit, can_refit
from axformer.repair.storage import write_refit
from axformer.repair.training import train
from axformer.reporting.hub_card import write_hub_card
from axformer.reporting.look import check_training_rows
from axformer.surroundings import Surroundings
from axformer.wire.finetuning import FinetuneSettings, check_head, completed, defaults_of
from axformer.wire.heads import NewHead

_APPLIED = (
    "It was made smaller by a plan that was made before; `plan.json` beside this directory says what was removed."
)
_NOTHING_TO_FIT = (
    "--calibrate: no weights are fitted anew for this plan; leave it out, or name another point of its path"
)


@dataclass(frozen=True)
class Lessons:
    """What a model is trained on, and how."""

    data: DataSource
    settings: FinetuneSettings | None = None
    """None for the defaults."""
    surroundings: Surroundings = field(default_factory=Surroundings)
    """Where it happens."""


def apply_plan(
    file: PlanFile,
    checkpoint: str | Path,
    data: DataSource,
    output: Path,
    *,
    forms: Collection[str] | None,
    stop: Stop | None = None,
    other_weights: bool = False,
    fits: Refit | None = None,
    calibrate: DataSource | None = None,
    lessons: Lessons | None = None,
    head: NewHead | None = None,
    pooling: str | None = None,
    device: str = "cpu",
) -> Sequence[Form | NotMade]:
    """Apply a plan to a checkpoint, and write each form in its own directory, and ``plan.json``.

    Args:
        file: the plan.
        checkpoint: a local directory, or ``hf://organisation/name``.
        data: real inputs; every form is compared on all of them with the model in memory.
        output: a directory that is empty or does not exist. If anything fails, nothing is left there.
        forms: names from :data:`axformer.forms.kinds.KINDS`; None for the usual ones of the plan.
        stop: a point on the path of the plan's pass; None for its end.
        other_weights: whether the checkpoint may have other weights than the plan was made with.
        fits: the fitted weights stored with the plan; None if it has none. For another point on the path, or with other
            weights, the model is refitted.
        calibrate: the calibration data of that refit, which needs no labels; None for ``data``.
        lessons: what is left is trained on; None for no training.
        head: the new head that a base model gets, which must then be trained; None for a fine-tuned checkpoint.
        pooling: how a plain encoder is pooled; None for any other checkpoint.
        device: the device that PyTorch computes on.

    Returns:
        Each form, or the reason why this model cannot have it.

    Raises:
        ConfigError: ``calibrate`` is given, but the model is not refitted; or a new head is not trained.
        PlanError: the plan was made from other weights, or does not fit the model or the point on the path.
        InputError: something else does not fit.
        ArtifactError: no form passed its check in a fresh process.
    """
    rows = read_rows(data.path, data.columns)
    settings = _settings(file, lessons, head)
    loaded = load_checkpoint(checkpoint, device, head, settings.seed, pooling).for_rows(rows)
    check_source(file, loaded, other_weights=other_weights)
    kept, file = file.plan, file if stop is None else file_at(file, stop, loaded.dimensions)
    checking = prepare(rows, loaded, reading_config(file.config))
    fits = _fits_of(file, fits, loaded, checking, calibrate, is_changed=file.plan != kept or other_weights)
    small = compact(loaded.model, loaded.architecture, file.plan)
    apply_refit(small, loaded.architecture, file.plan, fits or {})
    if lessons is not None:
        training = training_on(lessons.data, settings, checking, loaded, reading_config(file.config))
        is_untrained = head is not None or other_weights  # their head may know nothing yet
        if settings.needs_labels and not is_untrained and not file.config.get("accept_poor_model"):
            check_training_rows(loaded, training.rows, reading_config(file.config))
        train(small, loaded, file.plan, training, checking, lessons.surroundings, history=_begun_with(head, fits))
    names = usual_forms(file.plan, loaded.dimensions) if forms is None else forms
    model = cast(small, loaded.dtype)
    finished = Finished(loaded, file.plan, model, checking.samples, fits, lessons is not None)
    return _written(file, finished, names, output, checkpoint)


def _settings(file: PlanFile, lessons: Lessons | None, head: NewHead | None) -> FinetuneSettings:
    given = None if lessons is None else lessons.settings
    settings = completed(given, defaults_of(method_of(file.config), head))
    if head is not None:
        check_head(head, settings, has_train=lessons is not None, is_taught_too=True)
    return settings


def _fits_of(
    file: PlanFile,
    stored: Refit | None,
    checkpoint: Checkpoint,
    checking: DataSet,
    calibrate: DataSource | None,
    *,
    is_changed: bool,
) -> Refit | None:
    """The fitted weights of a plan: those stored with it, or others where plan or weights have changed."""
    if is_changed or (stored is None and file.repair is not None):
        return _refitted(file, checkpoint, checking, calibrate)
    if calibrate is not None:
        raise ConfigError(_NOTHING_TO_FIT)
    return stored


def _written(
    file: PlanFile, finished: Finished, names: Collection[str], output: Path, reference: str | Path
) -> Sequence[Form | NotMade]:
    """Write the forms of a model, its fitted weights and its plan; if anything fails, nothing is left."""
    source = file.source.model_copy(update={"sha256": finished.checkpoint.sha256})
    file = file.model_copy(update={"source": source})
    file = said_repaired(file, is_fitted=finished.fits is not None, is_trained=finished.is_trained)
    with new_directory(output) as draft:
        made = make_forms(finished, names, draft)
        write_hub_card(draft, finished.checkpoint, reference, _APPLIED, f"{len(finished.samples):,} rows", made)
        if finished.fits is not None:
            write_refit(finished.fits, draft)
        (draft / "plan.json").write_text(f"{file.model_dump_json(indent=1)}\n", encoding="utf-8")
    return made


def _begun_with(head: NewHead | None, fits: Refit | None) -> str:
    """What decides the weights that a training begins with, beside checkpoint, plan and settings."""
    total = hashlib.sha256(f"head {head}".encode())
    for _, fit in sorted((fits or {}).items()):
        for part in (fit.weight, fit.bias):
            if part is not None:
                total.update(part.cpu().numpy().tobytes())
    return total.hexdigest()


def _refitted(file: PlanFile, checkpoint: Checkpoint, checking: DataSet, calibrate: DataSource | None) -> Refit | None:
    """The weights that a pass with the same knobs would fit to the plan; None if it would fit nothing."""
    model, architecture = checkpoint.model, checkpoint.architecture
    if not fits_weights(file.config) or not can_refit(model, architecture):
        if calibrate is not None:
            raise ConfigError(_NOTHING_TO_FIT)
        return None
    config, data = reading_config(file.config), checking
    if calibrate is not None:
        rows = read_rows(calibrate.path, calibrate.columns.without_answers())
        data = prepare_inputs(checking.rows, rows, checkpoint, config)
    drawn = drawn_to_calibrate(data, checkpoint, config)
    method = made_by(config_class(file.config))
    return method.fits(model, architecture, drawn.samples).of(file.plan) or None


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
