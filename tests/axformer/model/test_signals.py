"""Laws of what is measured at the output projections: for every family and task, exact, and the same for any batches."""

from collections.abc import Iterator
from itertools import product

import pytest
import torch
from torch import Tensor

from axformer.config import PassConfig
from axformer.data.batches import Samples
from axformer.intake.dataset import prepare
from axformer.model.signals import Signals
from tests.family_cases import CONFIG, Case, all_cases, checkpoint_of, data_of

FAMILIES = [case for case in all_cases() if case.task == "classification"]
SINGLE = ("llama", "qwen3", "modernbert")
"""Families that compute positions or norms in float32 in any model, so that steps must be large."""
CASES = [*FAMILIES, *(Case("bert", task) for task in ("multiple_choice", "question_answering", "token_classification"))]


def signals_of(case: Case, samples: Samples | None = None) -> Signals:
    checkpoint = checkpoint_of(case)
    return Signals(checkpoint.model, checkpoint.architecture, samples or data_of(case).samples)


def gradients_of(case: Case, samples: Samples | None = None) -> list[Tensor]:
    """Of every block those of all model rows in order, shape (rows, units)."""
    parts = list(signals_of(case, samples).gradients(checkpoint_of(case).task))
    rows = torch.cat([places for places, _ in parts]).argsort()
    return [torch.cat([blocks[index] for _, blocks in parts])[rows] for index in range(len(parts[0][1]))]


def in_other_batches(case: Case) -> Samples:
    checkpoint = checkpoint_of(case)
    config = PassConfig(**{**CONFIG.model_dump(), "batch_tokens": 1})
    return prepare(data_of(case).rows, checkpoint, config).samples


def losses_with_gate(case: Case, block: int, unit: int, gate: float) -> Tensor:
    """The loss of every model row with one unit's columns multiplied."""
    checkpoint, samples = checkpoint_of(case), data_of(case).samples
    signals = signals_of(case)
    losses = torch.empty(len(samples.sample_of_row), dtype=torch.float64)

    def see(x: Tensor) -> Tensor:
        width = x.shape[-1] // signals.units(block)
        gates = torch.ones(x.shape[-1], dtype=x.dtype)
        gates[unit * width : (unit + 1) * width] = gate
        return x * gates

    end = signals.blocks()[block].watch(see)
    with torch.inference_mode():
        for batch in samples.batches:
            losses[batch.rows] = checkpoint.task.losses(checkpoint.model(**batch.inputs), batch).double()
    end()
    return losses


@pytest.fixture
def doubled(case: Case) -> Iterator[None]:
    """The case's model in float64 inside a test, since differences of float32 losses say little."""
    model = checkpoint_of(case).model
    model.double()
    yield
    model.float()


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.usefixtures("doubled")
def test_gate_gradients_equal_central_finite_differences(case: Case) -> None:
    step, tolerance = (1e-2, 2e-2) if case.family in SINGLE else (1e-4, 1e-3)
    gradients = gradients_of(case)
    for block, unit in product(range(len(gradients)), (0, 1)):
        ahead, behind = (losses_with_gate(case, block, unit, 1 + sign * step) for sign in (1, -1))
        slope = (ahead - behind) / (2 * step)
        assert torch.dist(gradients[block][:, unit].double(), slope) <= tolerance * (slope.norm() + 1e-3)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_batches_change_nothing_beyond_rounding(case: Case) -> None:
    alone = in_other_batches(case)
    for one, other in zip(gradients_of(case), gradients_of(case, alone), strict=True):
        assert one == pytest.approx(other, rel=1e-3, abs=1e-5)
    for one, other in zip(signals_of(case).mean_squares(), signals_of(case, alone).mean_squares(), strict=True):
        assert one == pytest.approx(other, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_squares_are_the_diagonal_of_second_moments_of_all_tokens_but_padding(case: Case) -> None:
    task, signals = checkpoint_of(case).task, signals_of(case)
    tokens: list[list[torch.Tensor]] = [[] for _ in signals.blocks()]
    for batch, pairs in signals.slopes(lambda output, batch: task.losses(output, batch).sum()):
        real = batch.inputs["attention_mask"].flatten(end_dim=-2).bool()
        for block, (x, _) in enumerate(pairs):
            tokens[block].append(x[real].double())
    for parts, squares in zip(tokens, signals.mean_squares(), strict=True):
        x = torch.cat(parts)
        assert squares == pytest.approx((x.T @ x).diagonal() / len(x), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_model_is_as_it_was_afterwards(case: Case) -> None:
    checkpoint, batch = checkpoint_of(case), data_of(case).samples.batches[0]
    with torch.inference_mode():
        before = checkpoint.task.losses(checkpoint.model(**batch.inputs), batch)
        signals_of(case).mean_squares()
    list(signals_of(case).gradients(checkpoint.task))
    with torch.inference_mode():
        assert torch.equal(before, checkpoint.task.losses(checkpoint.model(**batch.inputs), batch))
    assert all(part.grad is None for part in checkpoint.model.parameters())
