"""Every family on a CUDA device: the laws of its forms and evaluators, and the same decisions as on the CPU.

``AXFORMER_TEST_DEVICE=cpu`` rehearses them on a machine without one. Nothing here needs the service, so that a machine with
PyTorch, transformers and pytest is enough: ``python -m pytest --noconftest tests/gpu``.
"""

import os
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

import axformer
from axformer.architectures.registry import ARCHITECTURES
from axformer.config import make_config
from axformer.data.columns import DataSource
from axformer.data.reading import rows_of
from axformer.evaluation.prefix import PrefixEvaluator
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet, prepare
from axformer.model.compact import compact
from axformer.model.number_format import computing_in
from axformer.plan.elements import parse
from axformer.plan.plan import Plan
from axformer.plan.trial import Trial
from axformer.repair.finetune import Lesson, finetune
from axformer.repair.teacher import TaskLoss
from axformer.repair.training import loss_on
from axformer.run import PruningRun
from axformer.scores.measured import measure
from axformer.surroundings import Surroundings
from axformer.wire.finetuning import FinetuneSettings
from tests.family_cases import SETTINGS, Case, all_cases, batching_of, checkpoint_of, data_of, some_plan
from tests.plain import PlainEvaluator
from tests.runs import open_run
from tests.tiny_families import DIMENSIONS, tiny_family_model, tiny_family_tokenizer
from tests.tiny_models import tiny_rows, write_rows

DEVICE = os.environ.get("AXFORMER_TEST_DEVICE", "cuda")
NEEDS_DEVICE = [
    pytest.mark.gpu,
    pytest.mark.skipif(DEVICE == "cuda" and not torch.cuda.is_available(), reason="there is no CUDA device here"),
]
pytestmark = NEEDS_DEVICE
FULL = Plan.full(DIMENSIONS)
PLANS = [some_plan(seed) for seed in range(3)]
BUDGET = 1_000_000_000
NEAR = {"rtol": 1e-4, "atol": 1e-4}
"""Both devices add in another order."""
PASS = make_config("paper", {"attention_top_k": 3, "majority_fraction": 0.2, "early_decision": False, "max_length": 24})
COMPRESS = make_config(
    "paper", {"method": "compress", "confirm": 0.0, "within_points": None, "budgets": [0.8, 0.5], "max_length": 24}
)
TRAINING = FinetuneSettings(epochs=2, learning_rate=1e-3, batch_size=4)
cases = pytest.mark.parametrize("case", all_cases(), ids=str)
families = pytest.mark.parametrize("family", sorted(ARCHITECTURES))


class StoppedError(Exception):
    """Ends a training in the middle."""


@cache
def moved(case: Case) -> Checkpoint:
    """The checkpoint of a case on the device."""
    checkpoint = checkpoint_of(case)
    return replace(checkpoint, model=deepcopy(checkpoint.model).to(DEVICE))


@cache
def rows_on_device(case: Case) -> DataSet:
    return prepare(rows_of(SETTINGS[case.task][2]), moved(case), batching_of(case))


def plain(checkpoint: Checkpoint, data: DataSet) -> PlainEvaluator:
    return PlainEvaluator(checkpoint.model, checkpoint.architecture, checkpoint.task, data.samples)


@cases
def test_masked_equals_removed_and_the_cpu(case: Case) -> None:
    checkpoint, data = moved(case), rows_on_device(case)
    for plan in PLANS:
        masked = plain(checkpoint, data).losses(plan)
        small = compact(checkpoint.model, checkpoint.architecture, plan)
        torch.testing.assert_close(measure(small, checkpoint.task, data.samples).losses, masked, **NEAR)
        torch.testing.assert_close(masked, plain(checkpoint_of(case), data_of(case)).losses(plan), **NEAR)


@cases
def test_fast_equals_plain(case: Case) -> None:
    checkpoint, data = moved(case), rows_on_device(case)
    fast = PrefixEvaluator(
        *(checkpoint.model, checkpoint.architecture, checkpoint.task, data.samples, FULL), budget=BUDGET
    )
    plan = FULL
    for id in (
        "layer.1.hard_attention",
        "layer.3.ffn",
        "layer.2.attention.head.1",
        "layer.0",
        "layer.3.drop",
        "layer.1.drop",
    ):
        trial = plan.apply(parse(id), top_k=3)
        torch.testing.assert_close(fast.losses(trial), plain(checkpoint, data).losses(trial), **NEAR)
        fast.accept(trial)
        plan = trial


@families
def test_half_precision_stays_near_float32(family: str) -> None:
    case = Case(family, "classification")
    checkpoint, samples = moved(case), rows_on_device(case).samples
    for plan in PLANS:
        small = compact(checkpoint.model, checkpoint.architecture, plan)
        exact = measure(small, checkpoint.task, samples).losses
        with computing_in(small, torch.bfloat16):
            rounded = measure(small, checkpoint.task, samples).losses
        torch.testing.assert_close(rounded.mean(), exact.mean(), rtol=0.1, atol=0.1)


def run_on(device: str, family: str, directory: Path, config: Any) -> PruningRun:
    """A run over a tiny checkpoint of a family."""
    checkpoint = directory / "checkpoint"
    if not checkpoint.is_dir():
        tiny_family_model(family, num_labels=2).save_pretrained(checkpoint)
        tiny_family_tokenizer(family).save_pretrained(checkpoint)
        write_rows(directory / "data.jsonl", tiny_rows(40))
    return open_run(checkpoint, DataSource(str(directory / "data.jsonl")), config=config, device=device)


def decided(trials: list[Trial]) -> list[tuple[str | None, str]]:
    return [(trial.element, trial.verdict) for trial in trials]


@pytest.mark.parametrize("config", [PASS, COMPRESS], ids=["pass", "compress"])
@families
def test_decides_as_the_cpu_and_loads_there(family: str, config: Any, tmp_path: Path) -> None:
    runs = {device: run_on(device, family, tmp_path, config) for device in ("cpu", DEVICE)}
    traces = {device: list(run.trials()) for device, run in runs.items()}
    assert decided(traces[DEVICE]) == decided(traces["cpu"])
    losses = {device: [trial.loss for trial in trace] for device, trace in traces.items()}
    assert losses[DEVICE] == pytest.approx(losses["cpu"], rel=1e-3)
    runs[DEVICE].publish(tmp_path / "pruned")
    loaded, small = axformer.load(tmp_path / "pruned"), runs[DEVICE].model()
    assert loaded.device.type == "cpu"
    weights = small.state_dict()
    assert all(torch.equal(value, weights[name].cpu()) for name, value in loaded.state_dict().items())


@pytest.mark.parametrize("bf16", [False, True])
def test_an_interrupted_training_ends_as_an_undisturbed_one(bf16: bool, tmp_path: Path) -> None:
    case = Case("bert", "classification")
    settings = TRAINING.model_copy(update={"bf16": bf16})

    def trained(directory: Path | None, stop_at: int | None = None) -> Any:
        checkpoint, steps = moved(case), []

        def stop() -> None:
            steps.append(1)
            if len(steps) == stop_at:
                raise StoppedError

        lesson = Lesson(
            *(rows_on_device(case).samples.encoded, TaskLoss(checkpoint.task), settings),
            lambda model: loss_on(model, checkpoint, rows_on_device(case)),
        )
        model = compact(checkpoint.model, checkpoint.architecture, PLANS[0])
        around = Surroundings(directory, check_cancelled=stop)
        return model, finetune(model, checkpoint.tokenizer, lesson, around, save_seconds=0.0)

    with torch.inference_mode(mode=False):
        with pytest.raises(StoppedError):
            trained(tmp_path, stop_at=4)
        (resumed, course), (whole, expected) = trained(tmp_path), trained(None)
    assert (course.steps, course.kept_epoch) == (expected.steps, expected.kept_epoch)
    assert course.curve == pytest.approx(expected.curve)
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(resumed.state_dict()[name], value, msg=lambda text, name=name: f"{name}: {text}")
