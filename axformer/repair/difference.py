"""Differences between the fitted weights of two plans of one model, block by block."""

import torch
from torch import Tensor

from axformer.plan.diff import PlanDifference
from axformer.repair.refit import BlockFit, Refit


def differences_of_fits(first: Refit, second: Refit) -> list[PlanDifference]:
    """All differences, bottom block first; empty if the weights are equal bit for bit."""
    blocks = sorted({*first, *second})
    return [
        PlanDifference(block.layer, f"{block.kind.value} weights", *map(_description_of, pair))
        for block, pair in ((block, (first.get(block), second.get(block))) for block in blocks)
        if not _are_same(*pair)
    ]


def _are_same(one: BlockFit | None, other: BlockFit | None) -> bool:
    if one is None or other is None:
        return one is other
    return _are_equal(one.weight, other.weight) and _are_equal(one.bias, other.bias)


def _are_equal(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and torch.equal(one, other)


def _description_of(fit: BlockFit | None) -> str:
    if fit is None:
        return "the checkpoint's"
    how = "bias only" if fit.ridge is None else f"ridge {fit.ridge:g}"
    return f"fitted, {how}, {fit.tokens:,} tokens"
