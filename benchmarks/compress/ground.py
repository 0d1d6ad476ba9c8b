"""The inputs of a cell: a checkpoint with its rows, opened as in a run, and the held-out rows to measure on."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from axformer.config.compress import CompressConfig
from axformer.data.batches import Samples
from axformer.data.reading import read_rows
from axformer.data.source import DataSource
from axformer.evaluation.untouched import Untouched
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import prepare_like
from axformer.intake.parts import split_off
from axformer.methods.base import Ground, targets_of
from axformer.methods.registry import method_of
from axformer.model.operations import Operations
from axformer.opening import open_inputs
from axformer.plan.plan import Plan
from axformer.repair.polish import polish_training
from axformer.repair.refit import Refit, Refits, can_refit


@dataclass(frozen=True)
class RowFiles:
    """The data of a cell."""

    validation: Path
    """Deciding and confirming rows."""
    calibrate: Path
    """Training rows to calibrate on."""
    test: Path
    """Held-out rows."""


class TimedRefits(Refits):
    """Refits that remember when the first one began, which is when the level table was complete."""

    began: float | None = None

    def of(self, plan: Plan, check_cancelled: Callable[[], None] = lambda: None) -> Refit:
        """The refit of a plan."""
        if self.began is None:
            self.began = time.monotonic()
        return super().of(plan, check_cancelled)


@dataclass(frozen=True)
class Opened:
    """A cell's checkpoint and rows."""

    ground: Ground
    confirming: Samples
    test: Samples
    costs: Callable[[Plan], int]
    """Computes the operations of a plan for one pass over the confirming rows."""
    rows: dict[str, int]
    """Number of rows of each kind."""

    @property
    def checkpoint(self) -> Checkpoint:
        """The untouched model."""
        return self.ground.checkpoint

    def share(self, plan: Plan) -> float:
        """The share of the encoder's operations that a plan leaves."""
        count = self.ground.targets.encoder_operations
        return count(plan) / count(self.ground.targets.full)


def open_cell(checkpoint: Path, files: RowFiles, config: CompressConfig) -> Opened:
    """Load a checkpoint and its rows, and set the confirming rows apart."""
    inputs = open_inputs(
        *(checkpoint, DataSource(str(files.validation)), config, "cpu"),
        test=DataSource(str(files.test)),
    )
    found = inputs.checkpoint
    # With their labels, which the published alternative looks at.
    calibration = prepare_like(inputs.validation, read_rows(str(files.calibrate)), found, config)
    deciding, confirming = split_off(inputs.validation, found, config)
    assert inputs.test is not None, "it was asked for"
    assert confirming is not None, "the cells set rows apart"
    refits = None
    if config.is_refitted and can_refit(found.model, found.architecture):
        refits = TimedRefits(found.model, found.architecture, calibration.samples)
    recovery = None
    if config.polish:
        training = polish_training(calibration, found, config)
        recovery = method_of(config).extras.recovery(found, training, deciding, config, refits)
    parts = {"deciding": deciding, "confirming": confirming, "calibration": calibration, "test": inputs.test}
    return Opened(
        Ground(
            *(found, deciding.samples, config, targets_of(found, config, inputs.validation.samples)),
            calibration=calibration.samples,
            untouched=Untouched(found, deciding.samples, config),
            refits=refits,
            recovery=recovery,
        ),
        confirming.samples,
        inputs.test.samples,
        _operations(found, confirming.samples).left,
        {name: len(data.rows) for name, data in parts.items()},
    )


def _operations(checkpoint: Checkpoint, samples: Samples) -> Operations:
    pooled = checkpoint.task.pooled
    return Operations(checkpoint.model, checkpoint.architecture, pooled=pooled, lengths=samples.lengths)
