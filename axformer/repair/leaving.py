"""In which order heads or neurons leave a block: structured optimal brain surgeon.

A unit P costs what its removal adds to the squared error of the block's output once the columns that stay are fitted anew,

    score(P) = sum_i W_iP [(H^-1)_PP]^-1 W_iP^T,    H = C + lambda I,

with W as it was fitted after the removals before it (Hassibi and Stork, 1993; for groups Kurtic et al., ZipLM, 2023). The
cheapest leave first. The sum of all scores is the error of the last refit, so the order is greedy in just what the refit
repairs.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from axformer.repair.least_squares import damping

RIDGE = 1e-2
"""Times the mean of C's diagonal; what COMPRESS takes."""
STEP = 0.03
"""Share of the units that leave between two factorisations; 2 to 4 % in COMPRESS."""


@dataclass(frozen=True)
class Leaving:
    """Units in the order in which they leave, and what each costs."""

    units: list[int]
    scores: list[float]

    def kept(self, count: int) -> list[int]:
        """The units that are left when so many are, ascending."""
        return sorted(self.units[len(self.units) - count :])


def leaving_order(
    weight: Tensor, covariance: Tensor, units: int, *, ridge: float = RIDGE, step: float = STEP
) -> Leaving:
    """The order in which all units of a block leave.

    Args:
        weight: of the output projection, shape (outputs, columns); each unit owns as many columns as any other, in order.
        covariance: C of its inputs, shape (columns, columns), float64.
        units: how many there are.
        ridge: times the mean of C's diagonal.
        step: share of the units that leave together; 0 removes one at a time, exactly.
    """
    width = weight.shape[1] // units
    second = covariance + damping(covariance, ridge) * torch.eye(
        len(covariance), dtype=torch.float64, device=covariance.device
    )
    target = weight.double() @ second
    left, order, scores = list(range(units)), [], []
    together = max(1, round(step * units))
    while left:
        columns = _columns(left, width, second.device)
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(second[columns][:, columns]))
        fitted = target[:, columns] @ inverse
        costs = _scores(fitted, inverse, len(left), width)
        cheapest = costs.argsort(stable=True)[: min(together, len(left))].tolist()
        order += [left[place] for place in cheapest]
        scores += [float(costs[place]) for place in cheapest]
        leaving = set(cheapest)
        left = [unit for place, unit in enumerate(left) if place not in leaving]
    return Leaving(order, scores)


def _columns(units: list[int], width: int, device: torch.device) -> Tensor:
    first = torch.tensor(units, device=device) * width
    return (first[:, None] + torch.arange(width, device=device)).flatten()


def _scores(fitted: Tensor, inverse: Tensor, units: int, width: int) -> Tensor:
    """Of every unit that is left, shape (units,)."""
    if width == 1:
        return fitted.square().sum(dim=0) / inverse.diagonal()
    by_unit = fitted.view(len(fitted), units, width).transpose(0, 1)
    blocks = torch.stack(
        [inverse[start : start + width, start : start + width] for start in range(0, units * width, width)]
    )
    return torch.einsum("uiw,uwi->u", by_unit, torch.linalg.solve(blocks, by_unit.transpose(1, 2)))
