"""Training as a repair: the training data, one training of one plan's model, and its record."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import torch

from axformer import __version__
from axformer.config import RunConfig
from axformer.data.batches import batched
from axformer.data.encoding import Encoded
from axformer.data.rows import Rows
from axformer.devices import batch_tokens_of
from axformer.errors import ConfigError
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.model.number_format import cast, computing_in
from axformer.plan.plan import Plan
from axformer.repair.finetune import Lesson, finetune
from axformer.repair.freezing import frozen
from axformer.repair.losses import Course
from axformer.repair.teacher import Objective, TaskLoss, Taught, for_teacher
from axformer.scores.measured import Sets, measure, measure_sets, scores_of
from axformer.surroundings import Surroundings
from axformer.wire.data_summary import DataSummary
from axformer.wire.finetuning import FinetuneSettings
from axformer.wire.metrics import EMBEDDING
from axformer.wire.report import Finetuning, Scores

FIXED_MASKS = frozenset({"masked_lm"})
"""Tasks whose data masks the same tokens every time: a model would memorise these tokens instead of learning to predict."""
POLISH = FinetuneSettings(
    teacher=True, teacher_weight=1.0, hidden_weight=10.0, learning_rate=2e-4, warmup=0.1, dropout=False, patience=2
)
"""The settings of a polish of a model that is :data:`_WIDTH` wide. No label is looked at, so any texts of the kind that the
model will see do. Without dropout predictions come closer to the teacher's in few steps, and with hidden states as targets they
come closer on other texts (docs/compress.md, by two sets). A model that is near to its teacher already often moves away, and is
left as it was."""
_VECTORS = {"learning_rate": 2e-4, "hidden_weight": 0.0}
"""What is otherwise for vectors: of MiniLM's nDCG@10 an epoch over 5,950 texts kept 96.1 % at half of the operations, at 5e-5
95.3 %. Hidden states were not tried."""
_WIDTH = 384
"""The width for which the rate was measured. A wider model takes a lower one, in proportion (Yang and others, *Tensor Programs
V*, 2022, table 3: the rate of Adam for hidden weights goes with 1 / width)."""
_DECIDES_WEIGHTS = ("torch", "transformers", "accelerate")
"""Packages whose versions, beside our own, a training must have begun with to be continued."""


@dataclass(frozen=True)
class Repaired:
    """A model whose remaining weights were trained, and a record of the training."""

    model: Any
    """In the number format of its checkpoint."""
    record: Finetuning
    """The record for the report."""
    is_measured: bool = False
    """Whether the path was measured with its models trained, so that its figures and certificate are those of this model."""


@dataclass(frozen=True)
class Training:
    """Fine-tuning as a repair: the training rows as read and as encoded for the model, and the settings."""

    rows: Rows
    encoded: Encoded
    settings: FinetuneSettings
    config: RunConfig
    fitted_to: str = ""
    """Digest of separate calibration data, to which weights may have been fitted before."""
    base: Checkpoint | None = None
    """The base model with its new head as it was before its own training, where candidates begin with it."""

    def carry_out(
        self,
        checkpoint: Checkpoint,
        model: Any,
        plan: Plan,
        sets: Sets,
        deciding: DataSet,
        surroundings: Surroundings,
    ) -> Repaired:
        """Train a compact model in place, in float32. Before that, it is measured in the checkpoint's number format."""
        with computing_in(model, checkpoint.dtype):
            before = scores_of(measure_sets(model, checkpoint.task, sets))
        course = train(model, checkpoint, plan, self, deciding, surroundings)
        return Repaired(cast(model, checkpoint.dtype), record_of(self, course, before))


def record_of(training: Training, course: Course, before: Scores) -> Finetuning:
    """The record of a training for the report, with the figures of the model before it."""
    return Finetuning(
        settings=training.settings.model_dump(mode="json"),
        data=DataSummary(rows=len(training.rows), cut=training.encoded.cut, sha256=training.rows.digest()),
        before=before,
        **dict(course),
    )


def train(
    model: Any,
    checkpoint: Checkpoint,
    plan: Plan,
    training: Training,
    deciding: DataSet,
    surroundings: Surroundings,
    *,
    history: str = "",
) -> Course:
    """Train the model of one plan in place, in float32.

    The result depends on the checkpoint, the plan, the training and the history alone. If ``surroundings`` has a directory, the
    state of every training lies there under its own name, so that several can share the directory: one that was interrupted
    continues, and one that had ended gives its weights at once.

    Args:
        model: the plan's model in float32, compact or whole.
        checkpoint: the checkpoint that the plan belongs to, whose model is the teacher if there is one.
        plan: what is left of it.
        training: the rows and the settings.
        deciding: the deciding rows, on which the loss is measured after each epoch.
        surroundings: where the state is kept, and who is told.
        history: what else decided the model's weights, such as an earlier training.

    Returns:
        The course of the training.
    """
    settings = training.settings
    if surroundings.directory is not None:
        directory = surroundings.directory / fingerprint(checkpoint, plan, training, deciding, history)
        directory.mkdir(parents=True, exist_ok=True)
        surroundings = replace(surroundings, directory=directory)
    lesson = Lesson(
        encoded=training.encoded,
        objective=_objective(checkpoint, plan, training, surroundings.check_cancelled),
        settings=settings,
        deciding_loss=_deciding_loss(checkpoint, plan, settings, deciding),
    )
    with frozen(model, checkpoint.architecture, plan, settings):
        return finetune(model, checkpoint.tokenizer, lesson, surroundings)


def fingerprint(checkpoint: Checkpoint, plan: Plan, training: Training, deciding: DataSet, history: str = "") -> str:
    """A name for everything that decides the weights that a training ends with, in hexadecimal."""
    decisive = {
        "checkpoint": checkpoint.sha256,
        "layers": plan.model_dump(mode="json"),
        "config": training.config.model_dump(mode="json"),
        "settings": training.settings.model_dump(mode="json"),
        "rows": training.rows.digest(),
        "deciding": deciding.rows.digest(),
        "fitted_to": training.fitted_to,
        "history": history,
        "versions": {name: version(name) for name in _DECIDES_WEIGHTS} | {"axformer": __version__},
    }
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:32]


def _objective(
    checkpoint: Checkpoint, plan: Plan, training: Training, check_cancelled: Callable[[], None]
) -> Objective:
    settings, model = training.settings, checkpoint.model
    if not settings.teacher:
        return TaskLoss(checkpoint.task)
    taught = Taught(checkpoint.task, model, plan.remaining, settings)
    if settings.epochs > 1:
        device = str(model.device)
        rows = batched(training.encoded, checkpoint.tokenizer, batch_tokens=batch_tokens_of(device), device=device)
        taught.remember(rows, check_cancelled)
    return taught


def _deciding_loss(
    checkpoint: Checkpoint, plan: Plan, settings: FinetuneSettings, deciding: DataSet
) -> Callable[[Any], float]:
    """Measures the loss of a model on the deciding rows: as in the pass, or that of a training with a teacher alone."""
    if settings.needs_labels:
        return lambda trained: loss_on(trained, checkpoint, deciding)
    predictions = settings.model_copy(update={"hidden_weight": 0.0})  # hidden states are a means, and no end
    taught, batches = Taught(checkpoint.task, checkpoint.model, plan.remaining, predictions), deciding.samples.batches

    @torch.inference_mode()
    def loss(trained: Any) -> float:
        far = [float(taught.loss(trained, batch)) * len(batch.rows) for batch in batches]
        return sum(far) / sum(len(batch.rows) for batch in batches)

    return loss


def loss_on(model: Any, checkpoint: Checkpoint, deciding: DataSet) -> float:
    """The mean loss of a model on the deciding rows, as in the pass."""
    return float(measure(model, checkpoint.task, deciding.samples).losses.mean())


def check_trainable(task: str, device: str) -> None:
    """Check that a task's data, as the library encodes it, is suitable for training, and that Trainer can use the device.

    Raises:
        ConfigError: the data is not suitable, or the device is not the first GPU, which is the only one that Trainer uses.
    """
    kind, _, index = device.partition(":")
    if kind == "cuda" and index not in ("", "0"):
        raise ConfigError(
            f"device '{device}': fine-tuning computes on the first GPU only; use cuda:0 with CUDA_VISIBLE_DEVICES={index}"
        )
    if task in FIXED_MASKS:
        raise ConfigError(
            f"models of the task '{task}' cannot be fine-tuned here: their data is encoded with fixed masks, which are for "
            "measuring; leave finetune and train out, and train the finished model with a new mask each epoch"
        )


def polish_training(texts: DataSet, checkpoint: Checkpoint, config: RunConfig) -> Training:
    """The training of a polish.

    Args:
        texts: the rows to train on; their labels are not used.
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
    settings = POLISH.model_copy(update=_VECTORS if task == EMBEDDING else {})
    rate = settings.learning_rate * min(1.0, _WIDTH / checkpoint.dimensions.hidden_size)
    settings = settings.model_copy(update={"epochs": epochs, "seed": config.seed, "learning_rate": rate})
    encoded = for_teacher(texts.samples.encoded, checkpoint.tokenizer)
    return Training(texts.rows, encoded, settings, config)
