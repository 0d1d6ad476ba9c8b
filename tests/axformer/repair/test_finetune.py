"""Fine-tuning keeps the plan, lowers the loss that it is given, and leaves nothing behind."""

import math
import random
import tempfile
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import axformer.auto  # noqa: F401 - some heads build their base model by its configuration
from axformer.data.batches import Batch
from axformer.errors import ConfigError
from axformer.model.compact import compact
from axformer.repair.finetune import Lesson, finetune
from axformer.repair.teacher import TaskLoss
from axformer.repair.training import check_trainable, loss_on
from axformer.scores.measured import measure
from axformer.surroundings import Surroundings
from axformer.wire.finetuning import FinetuneSettings, make_settings
from axformer.wire.steps import Step
from tests.family_cases import Case, all_cases, checkpoint_of, data_of, some_plan

SETTINGS = FinetuneSettings(epochs=12, learning_rate=1e-3, batch_size=4)
CASES = [
    case
    for case in all_cases()
    if case.task != "masked_lm" and (case.task == "classification" or case.family == "bert")
]
CASES += [Case("gpt2", "causal_lm")]


def small(case: Case) -> Any:
    checkpoint = checkpoint_of(case)
    return compact(checkpoint.model, checkpoint.architecture, some_plan(3))


def lesson(case: Case, settings: FinetuneSettings = SETTINGS) -> Lesson:
    return Lesson(data_of(case).samples.encoded, TaskLoss(checkpoint_of(case).task), settings)


def trained(case: Case, settings: FinetuneSettings = SETTINGS) -> Any:
    model = small(case)
    finetune(model, checkpoint_of(case).tokenizer, lesson(case, settings))
    return model


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_loss_falls_and_the_plan_stays(case: Case) -> None:
    task, samples, before = checkpoint_of(case).task, data_of(case).samples, small(case)
    after = trained(case)
    assert not after.training
    assert measure(after, task, samples).losses.mean() < measure(before, task, samples).losses.mean()
    assert {name: part.shape for name, part in after.state_dict().items()} == {
        name: part.shape for name, part in before.state_dict().items()
    }
    assert after.config.axformer_layers == before.config.axformer_layers


def test_the_same_seed_gives_the_same_weights_and_another_other_ones() -> None:
    case = Case("bert", "classification")
    one, same, other = (trained(case, SETTINGS.model_copy(update={"seed": seed})).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(value, same[name]) for name, value in one.items())
    assert not all(torch.equal(value, other[name]) for name, value in one.items())


def test_mixed_precision_keeps_weights_in_float32_and_ends_near_them() -> None:
    case = Case("bert", "classification")
    start, exact, mixed = (
        small(case).state_dict(),
        trained(case).state_dict(),
        trained(case, SETTINGS.model_copy(update={"bf16": True})).state_dict(),
    )
    moved = torch.cat([(exact[name] - weight).flatten() for name, weight in start.items()]).norm()
    apart = torch.cat([(mixed[name] - exact[name]).flatten() for name in start]).norm()
    assert {weight.dtype for weight in mixed.values()} == {torch.float32}
    assert 0 < apart < moved / 2


def test_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    case = Case("bert", "classification")
    model = small(case)

    def drawn() -> tuple[float, float, float]:
        return random.random(), float(np.random.random()), torch.rand(()).item()

    random.seed(5)
    np.random.seed(5)
    torch.manual_seed(5)
    expected = drawn()
    random.seed(5)
    np.random.seed(5)
    torch.manual_seed(5)
    finetune(model, checkpoint_of(case).tokenizer, lesson(case))
    assert drawn() == expected
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().out == ""


def test_a_training_that_is_to_end_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    case, steps = Case("bert", "classification"), []

    def check_stop() -> None:
        steps.append(1)
        if len(steps) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        finetune(small(case), checkpoint_of(case).tokenizer, lesson(case), Surroundings(check_cancelled=check_stop))
    assert len(steps) == 3
    assert list(tmp_path.iterdir()) == []


class Diverging:
    """A loss that is no number from some step on."""

    def __init__(self, case: Case, at: int) -> None:
        self._of_the_task = TaskLoss(checkpoint_of(case).task)
        self._left = at

    def loss(self, model: Any, batch: Batch) -> Tensor:
        self._left -= 1
        return self._of_the_task.loss(model, batch) * (1.0 if self._left >= 0 else math.nan)


@pytest.mark.parametrize("patience", [None, 1])
def test_a_training_that_diverges_says_so(patience: int | None) -> None:
    case = Case("bert", "classification")
    checkpoint, data, seen = checkpoint_of(case), data_of(case), list[Step]()
    settings = SETTINGS.model_copy(update={"epochs": 3, "patience": patience})
    plan = Lesson(data.samples.encoded, Diverging(case, 2), settings, lambda model: loss_on(model, checkpoint, data))
    with pytest.raises(ConfigError, match=r"learning_rate=0\.001: the training diverged.*; lower learning_rate"):
        finetune(small(case), checkpoint.tokenizer, plan, Surroundings(on_step=seen.append))
    (first, *_, last) = seen[-1].curve
    assert first.loss is not None
    assert (last.loss, last.deciding) == (None, None)


def test_the_best_epoch_is_kept_where_a_later_one_diverges() -> None:
    case = Case("bert", "classification")
    checkpoint, data, model = checkpoint_of(case), data_of(case), small(case)
    settings = SETTINGS.model_copy(update={"epochs": 3, "patience": 1})
    plan = Lesson(data.samples.encoded, Diverging(case, 4), settings, lambda model: loss_on(model, checkpoint, data))
    assert finetune(model, checkpoint.tokenizer, plan).kept_epoch == 1
    assert math.isfinite(loss_on(model, checkpoint, data))


@pytest.mark.parametrize("rate", [1e-6, 1e-3, 0.1, 1.0])
def test_no_training_with_patience_leaves_a_higher_loss_on_the_deciding_rows(rate: float, tmp_path: Path) -> None:
    case = Case("bert", "classification")
    checkpoint, data, model = checkpoint_of(case), data_of(case), small(case)
    settings = SETTINGS.model_copy(update={"epochs": 2, "patience": 1, "learning_rate": rate})
    losses = [loss_on(model, checkpoint, data)]

    def on_deciding_rows(trained: Any) -> float:
        losses.append(loss_on(trained, checkpoint, data))
        return losses[-1]

    begun, lesson = (
        deepcopy(model.state_dict()),
        Lesson(data.samples.encoded, TaskLoss(checkpoint.task), settings, on_deciding_rows),
    )
    course = finetune(model, checkpoint.tokenizer, lesson, Surroundings(tmp_path))
    assert loss_on(model, checkpoint, data) == min(losses)
    is_as_it_was = all(torch.equal(weight, begun[name]) for name, weight in model.state_dict().items())
    assert is_as_it_was == (course.kept_epoch == 0)
    assert (rate == 1.0) <= is_as_it_was, "a rate that wrecks the model leaves it as it was"
    again = small(case)
    assert finetune(again, checkpoint.tokenizer, lesson, Surroundings(tmp_path)) == course, "its state says so too"
    assert all(torch.equal(weight, again.state_dict()[name]) for name, weight in model.state_dict().items())


def test_another_gpu_than_the_first_is_refused() -> None:
    for device in ("cpu", "cuda", "cuda:0"):
        check_trainable("classification", device)
    with pytest.raises(ConfigError, match="use cuda:0 with CUDA_VISIBLE_DEVICES=1"):
        check_trainable("classification", "cuda:1")


def test_data_with_fixed_masks_is_refused() -> None:
    with pytest.raises(ConfigError, match="'masked_lm' cannot be fine-tuned here"):
        check_trainable("masked_lm", "cpu")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epochs": 0}, "finetune epochs=0: Input should be greater than or equal to 1"),
        ({"rate": 1}, r"finetune 'rate' is unknown; did you mean learning_rate\?"),
        ({"x": 1}, "finetune 'x' is unknown; the settings are epochs, learning_rate, "),
        ({"freeze": "upper:2"}, "finetune freeze='upper:2': .*lower:N for the N lowest layers"),
        ({"temperature": 4}, "finetune temperature=4 says how to learn from a teacher; set teacher=true too"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_settings(values)
