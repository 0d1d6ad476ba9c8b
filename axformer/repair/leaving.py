"""The order in which heads or neurons leave a block: structured optimal brain surgeon.

The score of a unit P is the squared error that its removal adds to the block's output once the remaining columns are refitted,

    score(P) = tr(S W_P [(H^-1)_PP]^-1 W_P^T),    H = C + lambda I,

with W as fitted after the previous removals (Hassibi and Stork, 1993; for groups Kurtic et al., ZipLM, 2023), and e^T S e the
cost of an error e of the outputs: |e|^2, or what the predictions make of it (the second factor of K-FAC). The units with
the lowest scores leave first. The sum of all scores is the error of the last refit, so the order is greedy in exactly the error
that the refit minimises.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from axformer.repair.least_squares import damping

RIDGE = 1e-2
"""Lambda as a multiple of the mean of C's diagonal, as in COMPRESS."""
STEP = 0.03
"""Share of the units that leave between two updates of the fit; COMPRESS uses 2 to 4 %."""


@dataclass(frozen=True)
class Leaving:
    """Units in the order in which they leave, with their scores."""

    units: list[int]
    scores: list[float]

    def kept(self, count: int) -> list[int]:
        """The units that remain when ``count`` are left, in ascending order."""
        return sorted(self.units[len(self.units) - count :])

    def error(self, count: int) -> float:
        """The error of the output when ``count`` are left, as the scores predict it."""
        return math.fsum(self.scores[: len(self.units) - count])


def leaving_order(
    weight: Tensor,
    covariance: Tensor,
    units: int,
    *,
    metric: Tensor | None = None,
    step: float = STEP,
) -> Leaving:
    """The order in which all units of a block leave.

    Args:
        weight: the output projection, shape (outputs, columns); its columns belong to the units in order, equally many to each.
        covariance: C, the covariance of the inputs, shape (columns, columns), float64.
        units: number of units.
        metric: S, what an error e of the outputs costs, e^T S e; shape (outputs, outputs), positive definite. None for |e|^2.
        step: share of the units that leave together; 0 removes one at a time, which is exact.
    """
    width = weight.shape[1] // units
    second = covariance + damping(covariance, RIDGE) * torch.eye(
        len(covariance), dtype=torch.float64, device=covariance.device
    )
    matrix = weight.double() if metric is None else torch.linalg.cholesky(metric).T @ weight.double()
    left, order, scores = list(range(units)), [], []
    together = max(1, round(step * units))
    fitted, inverse = matrix, torch.cholesky_inverse(torch.linalg.cholesky(second))
    while left:
        costs = _scores(fitted, inverse, len(left), width)
        cheapest = costs.argsort(stable=True)[: min(together, len(left))].tolist()
        order += [left[index] for index in cheapest]
        scores += [float(costs[index]) for index in cheapest]
        staying = sorted(set(range(len(left))) - set(cheapest))
        gone, kept = (columns_of(some, width, second.device) for some in (cheapest, staying))
        # Both follow from those before (Hassibi and Stork, 1993), at a fraction of what a new factorisation takes.
        share = torch.linalg.solve(inverse[gone][:, gone], inverse[gone][:, kept])
        fitted = fitted[:, kept] - fitted[:, gone] @ share
        inverse = inverse[kept][:, kept] - inverse[kept][:, gone] @ share
        left = [left[index] for index in staying]
    return Leaving(order, scores)


def columns_of(units: Sequence[int], width: int, device: torch.device) -> Tensor:
    """The columns of an output projection that belong to units, ``width`` to each."""
    first = torch.tensor(units, dtype=torch.long, device=device) * width
    return (first[:, None] + torch.arange(width, device=device)).flatten()


def _scores(fitted: Tensor, inverse: Tensor, units: int, width: int) -> Tensor:
    """The score of every unit that is left, shape (units,)."""
    if width == 1:
        return fitted.square().sum(dim=0) / inverse.diagonal()
    by_unit = fitted.view(len(fitted), units, width).transpose(0, 1)
    blocks = torch.stack(
        [inverse[start : start + width, start : start + width] for start in range(0, units * width, width)]
    )
    return torch.einsum("uiw,uwi->u", by_unit, torch.linalg.solve(blocks, by_unit.transpose(1, 2)))
