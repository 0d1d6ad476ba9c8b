"""A training that was interrupted, at any point, continues and ends as if undisturbed: the same weights, byte for byte."""

import json
import shutil
import signal
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from axformer.repair.finetune import Lesson, finetune
from axformer.repair.losses import Course
from axformer.repair.saving import last_in
from axformer.repair.teacher import TaskLoss, Taught
from axformer.repair.training import loss_on
from axformer.surroundings import Surroundings
from axformer.wire.finetuning import FinetuneSettings
from tests.axformer.repair.test_finetune import small
from tests.family_cases import Case, all_cases, checkpoint_of, data_of
from tests.forked import forked_interpreter

PLAIN = FinetuneSettings(epochs=3, learning_rate=1e-3, batch_size=4, warmup=0.2, weight_decay=0.01)
PATIENT = PLAIN.model_copy(update={"epochs": 8, "learning_rate": 3e-2, "patience": 1})
"""It learns so fast that the loss on the deciding rows soon rises."""
BERT = Case("bert", "classification")
NEVER, A_WHILE = 1e6, 0.2
CASES = [case for case in all_cases() if case.task == "classification"] + [Case("gpt2", "causal_lm")]
KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from tests.axformer.repair.test_resuming import BERT, PLAIN, trained
steps = []
def kill():
    steps.append(1)
    if len(steps) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
torch.set_num_threads(int(sys.argv[3]))
trained(BERT, PLAIN, Path(sys.argv[1]), check_cancelled=kill)
"""


class InterruptedTrainingError(Exception):
    """Ends a training in the middle."""


def lesson_of(case: Case, settings: FinetuneSettings) -> Lesson:
    checkpoint, data = checkpoint_of(case), data_of(case)
    objective = Taught(checkpoint.task, checkpoint.model, range(4), settings) if settings.teacher else None
    if objective is not None:
        objective.remember(data.samples, lambda: None)
    return Lesson(
        data.samples.encoded,
        objective or TaskLoss(checkpoint.task),
        settings,
        lambda model: loss_on(model, checkpoint, data),
    )


def trained(
    case: Case, settings: FinetuneSettings, directory: Path | None, *, save_seconds: float = 0.0, **how: Any
) -> tuple[Any, Course]:
    model = small(case)
    around, lesson = Surroundings(directory, **how), lesson_of(case, settings)
    return model, finetune(model, checkpoint_of(case).tokenizer, lesson, around, save_seconds=save_seconds)


@cache
def undisturbed(case: Case, settings: FinetuneSettings) -> tuple[Any, Course]:
    return trained(case, settings, None)


def check_same(one: tuple[Any, Course], other: tuple[Any, Course]) -> None:
    weights, same = one[0].state_dict(), other[0].state_dict()
    assert all(torch.equal(value, same[name]) for name, value in weights.items())
    assert (one[1].curve, one[1].steps, one[1].kept_epoch) == (other[1].curve, other[1].steps, other[1].kept_epoch)


def interrupted(case: Case, settings: FinetuneSettings, directory: Path, step: int) -> None:
    """A training that ends at the beginning of a step, counted from 1."""
    steps = []

    def stop() -> None:
        steps.append(1)
        if len(steps) == step:
            raise InterruptedTrainingError

    with pytest.raises(InterruptedTrainingError):
        trained(case, settings, directory, check_cancelled=stop)


class TwoTurns:
    """A first turn that is over at once, and a second that lasts. Its clock stands still while the training waits."""

    def __init__(self, wait: Callable[[], None]) -> None:
        self._wait, self.waits, self._waited = wait, 0, 0.0

    def is_over(self) -> bool:
        return self.waits == 0

    def wait(self) -> None:
        self.waits += 1
        began = time.monotonic()
        self._wait()
        self._waited += time.monotonic() - began

    def clock(self) -> float:
        return time.monotonic() - self._waited


def test_a_training_waits_for_its_turn_at_a_checkpoint_that_it_writes_for_that(tmp_path: Path) -> None:
    seen = []
    turn = TwoTurns(lambda: seen.append(last_in(tmp_path)))
    check_same(trained(BERT, PLAIN, tmp_path, save_seconds=NEVER, turn=turn), undisturbed(BERT, PLAIN))
    assert [last.step for last in seen if last is not None] == [1]


def test_a_training_that_is_ended_while_it_waits_ends_as_if_undisturbed(tmp_path: Path) -> None:
    def end() -> None:
        raise InterruptedTrainingError

    with pytest.raises(InterruptedTrainingError):
        trained(BERT, PLAIN, tmp_path, save_seconds=NEVER, turn=TwoTurns(end))
    check_same(trained(BERT, PLAIN, tmp_path, save_seconds=NEVER), undisturbed(BERT, PLAIN))


def test_the_seconds_of_a_training_leave_out_those_that_it_waited(tmp_path: Path) -> None:
    turn = TwoTurns(lambda: time.sleep(A_WHILE))
    began = time.monotonic()
    _, course = trained(BERT, PLAIN, tmp_path, save_seconds=NEVER, turn=turn, clock=turn.clock)
    assert course.seconds + A_WHILE <= time.monotonic() - began


def test_a_training_without_a_directory_does_not_wait() -> None:
    """Nothing is saved, so that all would be lost if its process ended."""
    turn = TwoTurns(lambda: None)
    trained(BERT, PLAIN, None, turn=turn)
    assert turn.waits == 0


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_interrupted_training_ends_as_if_undisturbed(case: Case, tmp_path: Path) -> None:
    interrupted(case, PLAIN, tmp_path, 6)
    assert last_in(tmp_path) is not None
    check_same(trained(case, PLAIN, tmp_path), undisturbed(case, PLAIN))


def test_also_in_bfloat16(tmp_path: Path) -> None:
    mixed = PLAIN.model_copy(update={"bf16": True})
    interrupted(BERT, mixed, tmp_path, 6)
    check_same(trained(BERT, mixed, tmp_path), undisturbed(BERT, mixed))


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 3, 4, 9])
def test_it_may_be_interrupted_at_any_step_and_again(step: int, tmp_path: Path) -> None:
    interrupted(BERT, PLAIN, tmp_path, step)
    if step < 8:
        interrupted(BERT, PLAIN, tmp_path, 2)
    check_same(trained(BERT, PLAIN, tmp_path), undisturbed(BERT, PLAIN))


def test_a_killed_process_loses_nothing_that_was_saved(tmp_path: Path) -> None:
    program, state = tmp_path / "program.py", tmp_path / "state"
    program.write_text(KILLED, encoding="utf-8")
    killed = forked_interpreter(["-I", str(program), str(state), "6", str(torch.get_num_threads())])
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    last = last_in(state)
    assert last is not None
    assert last.step >= 3
    first_steps = []
    resumed = trained(BERT, PLAIN, state, on_step=lambda step: first_steps.append(step.done))
    assert first_steps[0] == last.step + 1
    check_same(resumed, undisturbed(BERT, PLAIN))


@pytest.mark.slow
def test_the_best_epoch_is_kept_wherever_the_training_is_interrupted(tmp_path: Path) -> None:
    whole = undisturbed(BERT, PATIENT)
    course = whole[1]
    assert course.kept_epoch == course.epochs - 1 < PATIENT.epochs - 1
    best = min((point for point in course.curve if point.deciding is not None), key=lambda point: point.deciding or 0)
    assert round(best.epoch) == course.kept_epoch
    assert loss_on(whole[0], checkpoint_of(BERT), data_of(BERT)) == best.deciding
    for step in (3, 5, course.steps):
        interrupted(BERT, PATIENT, tmp_path / str(step), step)
        moved = (tmp_path / str(step)).rename(tmp_path / "moved")
        check_same(trained(BERT, PATIENT, moved), whole)
        shutil.rmtree(moved)


def test_a_training_that_had_stopped_early_does_not_go_on(tmp_path: Path) -> None:
    whole = undisturbed(BERT, PATIENT)
    real = Path.replace

    def killed_before_the_outcome(self: Path, target: Path) -> Path:
        if "trained" in target.name:
            raise InterruptedTrainingError
        return real(self, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", killed_before_the_outcome)
        with pytest.raises(InterruptedTrainingError):
            trained(BERT, PATIENT, tmp_path)
    check_same(trained(BERT, PATIENT, tmp_path), whole)


def test_a_torn_checkpoint_is_not_used(tmp_path: Path) -> None:
    interrupted(BERT, PLAIN, tmp_path, 6)
    last = last_in(tmp_path)
    assert last is not None
    (last.path / "whole.json").unlink()
    (last.path / "model.safetensors").write_bytes(b"half")
    before = last_in(tmp_path)
    assert before is None or before.step < last.step
    assert not last.path.exists()
    check_same(trained(BERT, PLAIN, tmp_path), undisturbed(BERT, PLAIN))


def test_a_training_that_had_ended_gives_its_weights_without_a_step(tmp_path: Path) -> None:
    first = trained(BERT, PLAIN, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"trained.safetensors", "trained.json"}
    steps = []
    check_same(trained(BERT, PLAIN, tmp_path, on_step=steps.append), first)
    assert steps == []
    assert json.loads((tmp_path / "trained.json").read_text())["steps"] == 9


def test_a_taught_model_continues_too(tmp_path: Path) -> None:
    settings = PLAIN.model_copy(update={"teacher": True})
    interrupted(BERT, settings, tmp_path, 6)
    check_same(trained(BERT, settings, tmp_path), undisturbed(BERT, settings))
