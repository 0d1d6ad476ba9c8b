"""The law of probes: on average, the outer product of their gradients is the Fisher information of the predictions."""

import pytest
import torch
from torch import Tensor

from axformer.tasks.divergence import OutcomeKind, Predicted, each_row, probe

ROWS = 4000


def gradients(values: Tensor, outcome: OutcomeKind, rows: Tensor) -> Tensor:
    """The gradients of the probe by the values of all rows, one prediction each."""
    wanted = values.clone().requires_grad_()
    return torch.autograd.grad(probe(each_row(wanted, outcome), rows), wanted)[0]


def information(values: Tensor, outcome: OutcomeKind) -> Tensor:
    """The Fisher information of one prediction's distribution, from its formula."""
    match outcome:
        case OutcomeKind.CLASS:
            chances = values.softmax(dim=-1)
            return chances.diag() - torch.outer(chances, chances)
        case OutcomeKind.FLAGS:
            return (values.sigmoid() * (1 - values.sigmoid())).diag() / len(values)
        case OutcomeKind.NUMBERS:
            return torch.eye(len(values)) / len(values)


@pytest.mark.parametrize("outcome", list(OutcomeKind))
def test_the_mean_over_many_rows_is_the_information(outcome: OutcomeKind) -> None:
    values = torch.tensor([0.3, -1.0, 2.0, 0.5])
    found = gradients(values.expand(ROWS, -1), outcome, torch.arange(ROWS))
    torch.testing.assert_close(found.T @ found / ROWS, information(values, outcome), atol=0.02, rtol=0.0)


@pytest.mark.parametrize(
    ("values", "outcome"),
    [([0.4, -0.7], OutcomeKind.CLASS), ([1.3], OutcomeKind.FLAGS), ([2.0], OutcomeKind.NUMBERS)],
    ids=["two classes", "one flag", "one number"],
)
def test_where_there_is_one_direction_every_row_gives_it(values: list[float], outcome: OutcomeKind) -> None:
    one = torch.tensor(values)
    for found in gradients(one.expand(20, -1), outcome, torch.arange(20)):
        torch.testing.assert_close(torch.outer(found, found), information(one, outcome))


def test_a_row_is_probed_alike_in_any_batch() -> None:
    values, row = torch.randn(6, 5), torch.tensor([0, 0, 1, 1, 1, 1])
    both, alone = values.clone().requires_grad_(), values[2:].clone().requires_grad_()
    together = probe(Predicted(both, row, OutcomeKind.CLASS), torch.tensor([3, 8]))
    single = probe(Predicted(alone, row[2:] - 1, OutcomeKind.CLASS), torch.tensor([8]))
    (found,), (same,) = torch.autograd.grad(together, both), torch.autograd.grad(single, alone)
    torch.testing.assert_close(found[2:], same)


def test_the_predictions_of_a_row_count_as_their_mean() -> None:
    values = torch.full((4, 1), 0.8, requires_grad=True)
    number = probe(Predicted(values, torch.zeros(4, dtype=torch.long), OutcomeKind.FLAGS), torch.tensor([5]))
    (found,) = torch.autograd.grad(number, values)
    assert float(found.square().sum()) == pytest.approx(float(information(torch.tensor([0.8]), OutcomeKind.FLAGS)))
