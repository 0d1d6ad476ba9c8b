"""Polish: train what a plan leaves on the calibration rows, with the untouched model as the only teacher (COMPRESS, section 2).

No label is looked at, so any texts of the kind that the model will see serve. A training begins with the refitted weights.
"""

from axformer.config import RunConfig
from axformer.errors import ConfigError
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.plan.plan import Plan
from axformer.repair.recovery import Origin
from axformer.repair.refit import Fits
from axformer.repair.teacher import for_teacher
from axformer.repair.training import FIXED_MASKS, Training, check_trainable
from axformer.wire.finetuning import FinetuneSettings

SETTINGS = FinetuneSettings(teacher=True, teacher_weight=1.0, learning_rate=5e-5, dropout=False)
"""Without dropout predictions come closer to the teacher's in few steps (docs/compress.md)."""


def polish_training(calibration: DataSet, checkpoint: Checkpoint, config: RunConfig) -> Training:
    """The training of a polish.

    Args:
        calibration: the rows to train on; their labels are not used.
        checkpoint: the untouched model, the teacher.
        config: the knobs of the run: how often all rows are seen, and the seed.

    Raises:
        ConfigError: models of this task, or on this device, cannot be trained here.
    """
    task, epochs = checkpoint.task.name, config.needs.polish
    if task in FIXED_MASKS:
        raise ConfigError(
            f"polish={epochs}: models of the task '{task}' cannot be trained here, since their data is encoded with fixed "
            "masks; leave polish out"
        )
    check_trainable(task, str(checkpoint.model.device))
    settings = SETTINGS.model_copy(update={"epochs": epochs, "seed": config.seed})
    encoded = for_teacher(calibration.samples.encoded, checkpoint.tokenizer)
    return Training(calibration.rows, encoded, settings, config)


class RefitOrigins:
    """The origins of models that are refitted and then trained; see :class:`axformer.repair.recovery.Origins`."""

    def __init__(self, checkpoint: Checkpoint, refits: Fits | None) -> None:
        """
        Args:
            checkpoint: the untouched model.
            refits: fits the remaining weights; None if they are left as they are.
        """
        self._checkpoint = checkpoint
        self._refits = refits

    def of(self, plan: Plan) -> Origin:
        """The origin of a plan."""
        return Origin(self._checkpoint.model, fits=None if self._refits is None else self._refits.of(plan))
