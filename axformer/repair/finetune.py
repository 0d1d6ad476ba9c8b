"""Fine-tune the result of a pass: a few epochs of transformers' Trainer; the plan is fixed and no shape changes.

The loss is the task's own, the same as in the pass. Rows go through the model in the batches that Trainer draws, padded as in
the pass. Files are only written to a temporary directory, no metrics are sent anywhere, and the caller's random number
generators are left in the state they had before. On a CPU, the same rows, settings and threads give the same weights.
"""

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from axformer.data.batches import Batch, assemble
from axformer.data.encoding import Encoded
from axformer.repair.settings import FinetuneSettings, check_trainable
from axformer.tasks.base import Task


def finetune(
    model: Any,
    task: Task,
    tokenizer: Any,
    encoded: Encoded,
    settings: FinetuneSettings,
    check_cancelled: Callable[[], None] = lambda: None,
) -> Any:
    """Train a model in place.

    Args:
        model: compact or whole.
        task: the model's task.
        tokenizer: pads the inputs.
        encoded: the training rows, with only those features that the model takes.
        settings: the training settings.
        check_cancelled: called before every step; an exception from it ends the training.

    Returns:
        The same model, in evaluation mode on the same device.

    Raises:
        ConfigError: the task's data is not suitable for training, or Trainer cannot use the device.
    """
    device = model.device
    check_trainable(task.name, str(device))

    def collate(indices: Sequence[int]) -> dict[str, Any]:
        batch = assemble(encoded, indices, tokenizer, "cpu")
        return {"rows": batch.rows, "inputs": batch.inputs, "answers": batch.labels}

    with tempfile.TemporaryDirectory(prefix="axformer-finetune-") as scratch, _isolated_rng(device):
        trainer = Trainer(
            model=_LossModel(model, task),
            args=_arguments(settings, scratch, device, alone=encoded.padding.alone),
            data_collator=collate,
            train_dataset=range(len(encoded.labels)),
            callbacks=[_CheckingCancelled(check_cancelled)],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return model.to(device).eval()


class _LossModel(nn.Module):
    """A model whose output is the task's loss."""

    def __init__(self, model: nn.Module, task: Task) -> None:
        super().__init__()
        self.model = model
        self._task = task

    def forward(self, rows: Tensor, inputs: Mapping[str, Tensor], answers: Tensor) -> dict[str, Tensor]:
        batch = Batch(rows, dict(inputs), answers)
        return {"loss": self._task.losses(self.model(**inputs), batch).mean()}


class _CheckingCancelled(TrainerCallback):
    """Checks before every step whether the training was cancelled."""

    def __init__(self, check_cancelled: Callable[[], None]) -> None:
        self._check_cancelled = check_cancelled

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self._check_cancelled()


def _arguments(
    settings: FinetuneSettings, scratch: str, device: torch.device, *, alone: bool = False
) -> TrainingArguments:
    """The arguments of Trainer. With ``alone``, the rows of a step go through the model one at a time."""
    arguments = TrainingArguments(
        output_dir=scratch,
        num_train_epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        per_device_train_batch_size=1 if alone else settings.batch_size,
        gradient_accumulation_steps=settings.batch_size if alone else 1,
        seed=settings.seed,
        use_cpu=device.type == "cpu",
        save_strategy="no",
        logging_strategy="no",
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
