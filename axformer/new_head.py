"""Train a base model with its new head, and keep it as a checkpoint: it is the untouched model of the run that follows.

The weights are a function of the base model, the data and the settings alone. A training that was interrupted goes on in its
directory, and one that had ended is not repeated; the checkpoint is then written again, with the same bytes.
"""

import shutil
import tempfile
import weakref
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from axformer.forms.files import write_model
from axformer.forms.zeroed import zeroed
from axformer.intake.checkpoint import Checkpoint, load_checkpoint
from axformer.intake.dataset import DataSet
from axformer.model.number_format import cast
from axformer.plan.plan import Plan
from axformer.repair.training import Training, train
from axformer.surroundings import Surroundings
from axformer.wire.data_summary import DataSummary
from axformer.wire.finetuning import FinetuneSettings
from axformer.wire.heads import NewHead
from axformer.wire.report import HeadTraining

UNTOUCHED = "untouched"
"""The directory of the trained model in a result."""


@dataclass(frozen=True)
class Headed:
    """A base model with its new head, trained."""

    directory: Path
    """The checkpoint, in the ordinary layout of its family."""
    record: HeadTraining
    """The record for the report."""


def train_head(
    base: Checkpoint, new: NewHead, deciding: DataSet, training: Training, surroundings: Surroundings
) -> Headed:
    """Train a base model with its new head, and write it as a checkpoint.

    Args:
        base: the base model with the head, which is not trained yet; it is not changed.
        new: the head.
        deciding: the deciding rows, on which the loss is measured after each epoch.
        training: the training rows and the settings; there is no teacher yet, so what they say of one is left out.
        surroundings: where the state and the checkpoint are kept, and who is told. Without a directory, the checkpoint is kept
            until the result is given up.
    """
    own = None if surroundings.directory is not None else Path(tempfile.mkdtemp(prefix="axformer-head-"))
    directory = surroundings.directory or own
    assert directory is not None, "one of both is there"
    alone = replace(training, settings=_without_teacher(training.settings))
    model, full = deepcopy(base.model), Plan.full(base.dimensions)
    history = f"head {new} seed {training.settings.seed}"
    course = train(model, base, full, alone, deciding, replace(surroundings, directory=directory), history=history)
    target = directory / UNTOUCHED
    shutil.rmtree(target, ignore_errors=True)
    write_model(cast(zeroed(model, base.architecture, full), base.dtype), base.companions, target)
    record = HeadTraining(
        task=new.task,
        labels=new.labels,
        base_sha256=base.sha256,
        directory=f"{UNTOUCHED}/",
        settings=alone.settings.model_dump(mode="json"),
        data=DataSummary(rows=len(training.rows), cut=training.encoded.cut, sha256=training.rows.digest()),
        seconds=course.seconds,
        steps=course.steps,
        epochs=course.epochs,
        kept_epoch=course.kept_epoch,
        curve=course.curve,
    )
    headed = Headed(target, record)
    if own is not None:
        weakref.finalize(headed, shutil.rmtree, own, ignore_errors=True)
    return headed


def loaded_again(headed: Headed, base: Checkpoint) -> Checkpoint:
    """The trained model as a checkpoint like any other, for the same rows."""
    loaded = load_checkpoint(headed.directory, str(base.model.device))
    return replace(loaded, task=base.task)


def _without_teacher(settings: FinetuneSettings) -> FinetuneSettings:
    usual: dict[str, Any] = {
        name: FinetuneSettings.model_fields[name].default
        for name in ("teacher", "teacher_weight", "temperature", "hidden_weight")
    }
    return settings.model_copy(update=usual)
