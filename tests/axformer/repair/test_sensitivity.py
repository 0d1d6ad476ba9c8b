"""Laws of the sensitivity of predictions to the outputs of blocks."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from axformer.data.batches import Batch
from axformer.intake.dataset import prepare, prepare_inputs
from axformer.model.signals import Signals
from axformer.repair.refit import matrix_of
from axformer.repair.sensitivity import evened, sensitivities, to_outputs
from tests.family_cases import CONFIG, Case, all_cases, checkpoint_of, data_of

EXACT = Case("bert", "regression")
"""One number has one direction, so nothing is random."""
FAMILIES = [case for case in all_cases() if case.task == "classification"]
CASES = [*FAMILIES, *(Case("bert", task) for task in ("multiple_choice", "question_answering", "token_classification"))]
STEP = 1e-4


@pytest.fixture
def doubled() -> Iterator[None]:
    """The exact case's model in float64 inside a test."""
    model = checkpoint_of(EXACT).model
    model.double()
    yield
    model.float()


def changed(batch: Batch, block: int, token: int, error: Tensor) -> Tensor:
    """The divergence of each row with ``error`` added to the block's output at one token."""
    checkpoint = checkpoint_of(EXACT)
    weights = Signals(checkpoint.model, checkpoint.architecture, data_of(EXACT).samples).blocks()[block]
    more = torch.linalg.pinv(matrix_of(weights)) @ error

    def see(x: Tensor) -> Tensor:
        x = x.clone()
        x[:, token] += more
        return x

    with torch.inference_mode():
        before = checkpoint.task.predicted(checkpoint.model(**batch.inputs), batch)
        end = weights.watch(see)
        after = checkpoint.task.predicted(checkpoint.model(**batch.inputs), batch)
        end()
    rows = torch.arange(len(batch.rows))
    assert torch.equal(before.row, rows)
    return (before.values - after.values).square().mean(dim=-1) / 2


@pytest.mark.slow
@pytest.mark.usefixtures("doubled")
def test_a_small_error_of_a_block_costs_what_the_information_says() -> None:
    checkpoint, samples = checkpoint_of(EXACT), data_of(EXACT).samples
    found = sensitivities(checkpoint, samples)
    chance = torch.Generator().manual_seed(0)
    for block, information in enumerate(found):
        error = STEP * torch.randn(len(information), generator=chance, dtype=torch.float64)
        matrix = matrix_of(
            Signals(checkpoint.model, checkpoint.architecture, samples).blocks()[block]
        )  # what a block can add is in its range
        error = matrix @ (torch.linalg.pinv(matrix) @ error)
        total = 0.0
        for batch in samples.batches:
            for token in range(batch.tokens):
                real = batch.inputs["attention_mask"][:, token].bool()
                total += float(changed(batch, block, token, error)[real].sum())
        expected = float(error @ information @ error) / 2
        assert total / int(samples.lengths.sum()) == pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_information_is_of_the_data_and_not_of_its_batches(case: Case) -> None:
    checkpoint = checkpoint_of(case)
    config = CONFIG.model_copy(update={"batch_tokens": 1})
    other = prepare(data_of(case).rows, checkpoint, config).samples
    before = {name: value.clone() for name, value in checkpoint.model.state_dict().items()}
    for one, same in zip(
        sensitivities(checkpoint, data_of(case).samples), sensitivities(checkpoint, other), strict=True
    ):
        assert torch.equal(one, one.T)
        assert torch.dist(one, same) <= 1e-3 * one.norm()
        assert float(torch.linalg.eigvalsh(evened(one))[0]) > 0
    assert all(torch.equal(value, before[name]) for name, value in checkpoint.model.state_dict().items())


def test_derivatives_by_inputs_become_derivatives_by_outputs() -> None:
    matrix, slope = torch.randn(5, 12), torch.randn(7, 5)
    torch.testing.assert_close((slope @ matrix) @ to_outputs(matrix).T, slope, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("case", [case for case in all_cases() if case.family in ("bert", "gpt2")], ids=str)
def test_rows_that_calibrate_have_the_information_of_those_with_labels(case: Case) -> None:
    checkpoint, data = checkpoint_of(case), data_of(case)
    bare = prepare_inputs(None, data.rows, checkpoint, CONFIG)
    found, expected = sensitivities(checkpoint, bare.samples), sensitivities(checkpoint, data.samples)
    for one, other in zip(found, expected, strict=True):
        assert one.abs().sum() > 0.0
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4 * float(other.abs().max()))
