"""Train a model: epochs of transformers' Trainer; the plan is fixed and no shape changes.

Rows of similar length go through the model together, padded as in the pass. No metrics are sent anywhere, and the
caller's random number generators are left in the state they had before. On a CPU, the same rows, settings and threads give the
same weights, also if the training was interrupted and continued from its directory.
"""

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Sampler
from transformers import EarlyStoppingCallback, PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from axformer.data.batches import Batch, assemble
from axformer.data.encoding import Encoded
from axformer.errors import ConfigError
from axformer.repair.losses import Course, curve_of, step_of
from axformer.repair.saving import SAVE_SECONDS, Resumable, Saving, last_in, read_outcome, write_outcome
from axformer.repair.teacher import Objective
from axformer.surroundings import Surroundings
from axformer.wire.finetuning import FinetuneSettings

_LOGS = 0.01
"""Share of the steps between two points of the curve of losses."""
_DECIDING = "eval_loss"
POOL = 50
"""Batches whose rows are sorted together. So many are enough for a tenth of padding, and few enough that batches differ from
epoch to epoch."""


@dataclass(frozen=True)
class Lesson:
    """What a model is trained on, and how."""

    encoded: Encoded
    """The training rows, with only those features that the model takes."""
    objective: Objective
    settings: FinetuneSettings
    deciding_loss: Callable[[Any], float] | None = None
    """The loss of a model on the deciding rows, measured after each epoch; early stopping needs it."""


def finetune(
    model: Any,
    tokenizer: Any,
    lesson: Lesson,
    surroundings: Surroundings | None = None,
    *,
    save_seconds: float = SAVE_SECONDS,
) -> Course:
    """Train a model in place; afterwards it is in evaluation mode on the same device.

    Args:
        model: compact or whole.
        tokenizer: pads the inputs.
        lesson: the rows and the settings.
        surroundings: where it happens. Their directory is for the state of this training alone, which continues from what is
            there. Steps are reported, and cancelling is looked for, at every step; an exception ends the training and leaves
            its state. A turn that is over waits at the next checkpoint, which it brings forward.
        save_seconds: seconds between two checkpoints; there is also one after each epoch.

    Returns:
        The course of the training.

    Raises:
        ConfigError: the training diverged.
    """
    device, around = model.device, surroundings or Surroundings()
    directory = around.directory
    keeping = tempfile.TemporaryDirectory(prefix="axformer-finetune-") if directory is None else nullcontext(directory)
    with keeping as place, _isolated_rng(device):
        trained = _LossModel(model, lesson.objective, lesson.settings.dropout)
        ended = None if directory is None else read_outcome(directory)
        if ended is not None:
            trained.load_state_dict(ended[0], strict=False)
            course = Course.model_validate_json(ended[1])
        else:
            course = _train_to_best(trained, tokenizer, lesson, Path(place), around, save_seconds)
            if directory is not None:
                write_outcome(directory, trained.state_dict(), course.model_dump_json())
    model.to(device).eval()
    return course


def _train_to_best(
    model: "_LossModel", tokenizer: Any, lesson: Lesson, place: Path, around: Surroundings, save_seconds: float
) -> Course:
    """Train a model; with ``patience`` its weights of before stay unless an epoch brings a lower loss on the deciding rows."""
    if lesson.settings.patience is None or lesson.deciding_loss is None:
        return _train(model, tokenizer, lesson, place, around, save_seconds)
    weights = {name: weight.detach().cpu().clone() for name, weight in model.state_dict().items()}
    before = lesson.deciding_loss(model.model.eval())
    course = _train(model, tokenizer, lesson, place, around, save_seconds)
    if before > min(point.deciding for point in course.curve if point.deciding is not None):
        return course
    model.load_state_dict(weights, strict=False)
    return course.model_copy(update={"kept_epoch": 0})


def _train(
    model: "_LossModel",
    tokenizer: Any,
    lesson: Lesson,
    place: Path,
    around: Surroundings,
    save_seconds: float,
) -> Course:
    encoded, settings, last = lesson.encoded, lesson.settings, last_in(place)
    saves = around.directory is not None

    def collate(indices: Sequence[int]) -> dict[str, Any]:
        batch = assemble(encoded, indices, tokenizer, "cpu")
        return {"rows": batch.rows, "inputs": batch.inputs, "answers": batch.labels}

    saving = Saving(0.0 if last is None else last.seconds, save_seconds, around)
    watching = _Watching(saving, 0 if last is None else last.step, around)
    trainer = _Trainer(
        lesson.deciding_loss,
        ByLength(encoded.lengths, settings.batch_size, settings.seed),
        model=model,
        args=_arguments(lesson, place, model.device, last, saves=saves),
        data_collator=collate,
        train_dataset=range(len(encoded.labels)),
        eval_dataset=() if lesson.deciding_loss is not None else None,
        callbacks=[watching, *([saving] if saves else []), *_stopping(settings)],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=None if last is None else str(last.path))
    _check_finite(trainer, model, settings)
    return Course(
        steps=trainer.state.global_step,
        epochs=round(trainer.state.epoch or 0),
        kept_epoch=_kept_epoch(trainer, settings),
        seconds=saving.seconds,
        curve=curve_of(trainer.state.log_history),
    )


def _stopping(settings: FinetuneSettings) -> list[TrainerCallback]:
    return [] if settings.patience is None else [EarlyStoppingCallback(early_stopping_patience=settings.patience)]


def _check_finite(trainer: Trainer, model: nn.Module, settings: FinetuneSettings) -> None:
    """Check that a training has led to a model.

    Raises:
        ConfigError: its weights are no numbers, or with ``patience`` no epoch had a finite loss on the deciding rows.
    """
    has_kept = settings.patience is None or trainer.state.best_global_step
    if not has_kept or not all(bool(weight.isfinite().all()) for weight in model.parameters()):
        raise ConfigError(
            f"finetune learning_rate={settings.learning_rate:g}: the training diverged, so that after "
            f"{trainer.state.global_step} steps the model computes no numbers; lower learning_rate, or let it rise with warmup"
        )


def _kept_epoch(trainer: Trainer, settings: FinetuneSettings) -> int:
    """The epoch whose weights are kept, from 1."""
    step = trainer.state.global_step if settings.patience is None else trainer.state.best_global_step
    logged = [entry["epoch"] for entry in trainer.state.log_history if entry["step"] == step]
    return round(logged[-1])


class ByLength(Sampler[int]):
    """Draws rows at random, sorts some batches' worth of them by length, and draws the batches at random again.

    The order is a function of the seed and the epoch alone, so a training that was interrupted continues with the rows that it
    has not seen. The rows that do not fill a batch are a random few, and come last.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int) -> None:
        """Draw from rows of so many tokens each."""
        super().__init__()
        self._lengths = lengths
        self._batch_size = batch_size
        self._seed = seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Trainer calls this at the beginning of an epoch, counted from 0."""
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + self._epoch)
        drawn = torch.randperm(len(self), generator=generator).tolist()
        size, whole = self._batch_size, len(self) - len(self) % self._batch_size
        batches = []
        for start in range(0, whole, POOL * size):
            pool = sorted(drawn[start : min(start + POOL * size, whole)], key=self._lengths.__getitem__)
            batches += [pool[first : first + size] for first in range(0, len(pool), size)]
        for index in torch.randperm(len(batches), generator=generator).tolist():
            yield from batches[index]
        yield from drawn[whole:]


class _Trainer(Trainer):
    """Measures the loss on the deciding rows as the pass does, and draws rows by length."""

    def __init__(self, deciding_loss: Callable[[Any], float] | None, sampler: ByLength, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._deciding_loss = deciding_loss
        self._sampler = sampler

    def _get_train_sampler(self, train_dataset: Any = None) -> ByLength:  # noqa: ARG002 - Trainer's names
        return self._sampler

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """The loss on the deciding rows, under the name that Trainer knows it by."""
        assert self._deciding_loss is not None, "only asked for where there are deciding rows"
        assert isinstance(self.model, _LossModel)
        metrics = {_DECIDING: self._deciding_loss(self.model.model.eval())}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


class _LossModel(nn.Module):
    """A model whose output is its loss. Weights with several names are saved under their first."""

    def __init__(self, model: Any, objective: Objective, has_dropout: bool) -> None:
        super().__init__()
        self.model = model
        self._has_dropout = has_dropout
        self.device: torch.device = model.device
        self._objective = objective
        self.register_state_dict_post_hook(_once)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_post_hook(_ignore_other_names)  # type: ignore[no-untyped-call]

    def train(self, mode: bool = True) -> "_LossModel":
        """Trainer calls this before every step; dropout is all that the mode changes in transformers' encoders."""
        super().train(mode)
        self.model.train(mode and self._has_dropout)
        return self

    def forward(self, rows: Tensor, inputs: Mapping[str, Tensor], answers: Tensor) -> dict[str, Tensor]:
        return {"loss": self._objective.loss(self.model, Batch(rows, dict(inputs), answers))}


def _ignore_other_names(model: nn.Module, keys: Any) -> None:
    """After loading: a weight that was saved under its first name lacks under no other."""
    saved = set(model.state_dict())
    keys.missing_keys[:] = [name for name in keys.missing_keys if name in saved]


def _once(_: nn.Module, weights: dict[str, Tensor], *__: Any) -> None:
    seen: set[tuple[Any, ...]] = set()
    for name, weight in list(weights.items()):
        identity = (weight.data_ptr(), weight.shape, weight.stride())
        if weight.numel() and identity in seen:
            del weights[name]
        seen.add(identity)


class _Watching(TrainerCallback):
    """Tells how far the training is, and checks before every step whether it was cancelled."""

    def __init__(self, saving: Saving, begun_at: int, around: Surroundings) -> None:
        self._saving = saving
        self._begun_at = begun_at
        self._before = saving.seconds
        self._around = around

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self._around.check_cancelled()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002 - Trainer's names
        seconds = (self._saving.seconds - self._before) / (state.global_step - self._begun_at)
        self._around.on_step(step_of(state, seconds, self._begun_at))

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002 - Trainer's names
        control.should_log = True  # so that a checkpoint never lies between two points of the curve


def _arguments(
    lesson: Lesson, place: Path, device: torch.device, last: Resumable | None, *, saves: bool
) -> TrainingArguments:
    """The arguments of Trainer."""
    settings, alone = lesson.settings, lesson.encoded.padding.alone  # alone: one row at a time goes through the model
    keeps_best = settings.patience is not None
    arguments = TrainingArguments(
        output_dir=str(place),
        num_train_epochs=last.epoch if last is not None and last.has_stopped else settings.epochs,
        learning_rate=settings.learning_rate,
        per_device_train_batch_size=1 if alone else settings.batch_size,
        gradient_accumulation_steps=settings.batch_size if alone else 1,
        warmup_steps=settings.warmup,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        bf16=settings.bf16,
        seed=settings.seed,
        use_cpu=device.type == "cpu",
        eval_strategy="no" if lesson.deciding_loss is None else "epoch",
        save_strategy="epoch" if saves or keeps_best else "no",
        save_total_limit=2,
        load_best_model_at_end=keeps_best,
        metric_for_best_model=_DECIDING if keeps_best else None,
        greater_is_better=False if keeps_best else None,
        logging_strategy="steps",
        logging_steps=_LOGS,
        logging_nan_inf_filter=False,  # else a loss that is no number looks like the mean of those before
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
    )
    arguments._n_gpu = min(1, arguments.n_gpu)  # a model is on one device
    return arguments


@contextmanager
def _isolated_rng(device: torch.device) -> Iterator[None]:
    """Restore the state of all random number generators after the ``with`` block."""
    python, array = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng([] if device.type == "cpu" else [device.index or 0]):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(array)
