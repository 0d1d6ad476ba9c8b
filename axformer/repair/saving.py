"""The state of a training in a directory that outlives its process, so that a killed training continues where it was.

Trainer writes its checkpoints (weights, optimizer, schedule, random numbers, losses) file by file. One counts only after its
mark is there, which is written last; others are what a kill left, and are removed. The weights of a training that has ended
replace its checkpoints, so that the same training need not run again either.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from axformer.surroundings import Surroundings

SAVE_SECONDS = 300.0
"""Longest time between two checkpoints, and so about the most work that a kill costs. One has three times the bytes of the
weights, which takes seconds to write."""
_MARK = "whole.json"
_WEIGHTS, _OUTCOME = "trained.safetensors", "trained.json"


@dataclass(frozen=True)
class Resumable:
    """A checkpoint that a training can continue from."""

    path: Path
    step: int
    seconds: float
    """Seconds of training up to here, in all processes."""
    has_stopped: bool
    """Whether the training was over, early, when the checkpoint was written."""
    epoch: float


def last_in(directory: Path) -> Resumable | None:
    """The last whole checkpoint in a directory; what is not whole is removed. The directory may have moved meanwhile."""
    whole = []
    for path in directory.glob(f"{PREFIX_CHECKPOINT_DIR}-*"):
        if (path / _MARK).is_file():
            whole.append((int(path.name.rpartition("-")[2]), path))
        else:
            shutil.rmtree(path)
    if not whole:
        return None
    step, path = max(whole)
    state = json.loads((path / TRAINER_STATE_NAME).read_text(encoding="utf-8"))
    if state["best_model_checkpoint"] is not None:
        state["best_model_checkpoint"] = str(directory / Path(state["best_model_checkpoint"]).name)
        _write(path / TRAINER_STATE_NAME, json.dumps(state, indent=2))
    stopped = state["stateful_callbacks"]["TrainerControl"]["args"]["should_training_stop"]
    seconds = json.loads((path / _MARK).read_text(encoding="utf-8"))["seconds"]
    return Resumable(path, step, seconds, bool(stopped), float(state["epoch"]))


class Saving(TrainerCallback):
    """Asks for a checkpoint every few minutes and at the end of a turn, marks those that are written, and waits at them.

    Between epochs they are only written where the losses are logged, so that the means of a resumed training are the same, and
    not at an epoch's last step, where one follows anyway.
    """

    def __init__(self, before: float, every: float, around: Surroundings) -> None:
        """
        Args:
            before: seconds of training in earlier processes.
            every: seconds between two checkpoints.
            around: where the training happens.
        """
        self._every = every
        self._turn, self._clock = around.turn, around.clock
        self._since = self._clock() - before
        self._saved = self._clock()

    @property
    def seconds(self) -> float:
        """Seconds of training in all processes."""
        return self._clock() - self._since

    def on_step_end(
        self,
        args: TrainingArguments,  # noqa: ARG002 - Trainer's names
        state: TrainerState,
        control: TrainerControl,
        **_: Any,
    ) -> None:
        """Ask for a checkpoint if one is due."""
        ends_epoch = state.global_step % max(1, state.max_steps // state.num_train_epochs) == 0
        is_due = self._clock() - self._saved >= self._every or self._turn.is_over()
        if control.should_log and not ends_epoch and is_due:
            control.should_save = True

    def on_save(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - Trainer's names
        **_: Any,
    ) -> None:
        """Mark the checkpoint as whole, after its files have reached the disk."""
        assert args.output_dir is not None
        path = Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
        for file in path.iterdir():
            _sync(file)
        _write(path / _MARK, json.dumps({"seconds": self.seconds}))
        self._saved = self._clock()
        if self._turn.is_over():
            self._turn.wait()


def write_outcome(directory: Path, weights: Mapping[str, Tensor], outcome: str) -> None:
    """Keep the weights of a training that has ended, and a text about it, instead of the checkpoints."""
    save_file({name: weight.contiguous().cpu() for name, weight in weights.items()}, directory / f".{_WEIGHTS}")
    _sync(directory / f".{_WEIGHTS}")
    (directory / f".{_WEIGHTS}").replace(directory / _WEIGHTS)
    _write(directory / _OUTCOME, outcome)
    for path in directory.glob(f"{PREFIX_CHECKPOINT_DIR}-*"):
        shutil.rmtree(path)


def read_outcome(directory: Path) -> tuple[dict[str, Tensor], str] | None:
    """What :func:`write_outcome` kept; None if the training has not ended."""
    if not (directory / _OUTCOME).is_file():
        return None
    return load_file(directory / _WEIGHTS), (directory / _OUTCOME).read_text(encoding="utf-8")


def _write(file: Path, text: str) -> None:
    """Write a file so that it is there as a whole or not at all."""
    draft = file.with_name(f".{file.name}")
    draft.write_text(text, encoding="utf-8")
    _sync(draft)
    draft.replace(file)


def _sync(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
