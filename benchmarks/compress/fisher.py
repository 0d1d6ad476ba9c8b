"""Masks by Fisher information, as in Kwon and others, *A Fast Post-Training Pruning Framework for Transformers* (2022),
implemented from the formulas in the paper.

A mask m has a gate for each head and neuron. Near m = 1, the loss of a trained model rises by about (1 - m)^T I (1 - m) / 2,
where I is the empirical Fisher information E[g g^T] of the gates, and g the gradient of a row's loss.

1. With I approximated by its diagonal, the gates with the most information are kept, as many as the operations allow: for each
   number of heads, the rest of the budget goes to neurons.
2. Within each block, with the block's full I, kept gates are swapped with removed gates if that lowers the sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from axformer.evaluation.signals import Signals
from axformer.methods.base import Ground


@dataclass(frozen=True)
class Costs:
    """Operations of one unit; all layers have the same shapes."""

    head: float
    neuron: float


def information(ground: Ground) -> list[Tensor]:
    """The Fisher information of each block's gates on the calibration rows, using their labels; shape (units, units) each."""
    checkpoint, samples = ground.checkpoint, ground.calibration
    signals = Signals(checkpoint.model, checkpoint.architecture, samples)
    sums: list[Tensor] | None = None
    for _, slopes in signals.gradients(checkpoint.task):
        products = [(slope.T @ slope).double() for slope in slopes]
        sums = products if sums is None else [one + more for one, more in zip(sums, products, strict=True)]
    assert sums is not None, "there is data"
    return [one / len(samples) for one in sums]


def most_informative(found: Sequence[Tensor], costs: Costs, budget: float) -> list[list[int]]:
    """The units of each block to keep within a budget: those with the most diagonal Fisher information.

    Args:
        found: the information of each block's gates; even blocks are attention.
        costs: the cost of a unit.
        budget: operations of all kept units together.
    """
    heads, neurons = (torch.cat([one.diagonal() for one in found[kind::2]]).sort(descending=True) for kind in (0, 1))
    kept_by_heads, kept_by_neurons = (
        torch.cat([one.values.new_zeros(1), one.values.cumsum(0)]) for one in (heads, neurons)
    )
    most, counts = -1.0, (0, 0)
    for count in range(len(heads.values) + 1):
        left = budget - count * costs.head
        if left < 0:
            break
        rest = min(len(neurons.values), int(left / costs.neuron))
        kept = float(kept_by_heads[count] + kept_by_neurons[rest])
        if kept > most:
            most, counts = kept, (count, rest)
    chosen = [set(ranked.indices[:count].tolist()) for ranked, count in zip((heads, neurons), counts, strict=True)]
    return [_of_block(block, len(one), chosen[block % 2]) for block, one in enumerate(found)]


def rearranged(information: Tensor, kept: Sequence[int]) -> list[int]:
    """The kept units of one block after swaps with removed ones. Each kept unit is considered for a swap once.

    Args:
        information: the information of the block's gates, shape (units, units).
        kept: the kept units before the swaps.
    """
    goes = torch.ones(len(information), dtype=torch.bool)
    goes[list(kept)] = False
    if not goes.any():
        return sorted(kept)
    diagonal = information.diagonal()
    for unit in sorted(kept, key=lambda one: float(diagonal[one])):
        goes[unit] = True
        # The change of the sum over all removed units if one of them is kept instead; the lowest wins.
        change = diagonal - 2 * (information @ goes.to(information.dtype))
        goes[int(torch.where(goes, change, torch.inf).argmin())] = False
    return torch.nonzero(~goes).flatten().tolist()


def lost_information(information: Tensor, kept: Sequence[int]) -> float:
    """The sum (1 - m)^T I (1 - m) of one block."""
    gone = torch.ones(len(information), dtype=information.dtype)
    gone[list(kept)] = 0.0
    return float(gone @ information @ gone)


def _of_block(block: int, units: int, chosen: set[int]) -> list[int]:
    """The chosen units of a block, from their indices among all units of the block's kind."""
    first = block // 2 * units
    return [unit for unit in range(units) if first + unit in chosen]
