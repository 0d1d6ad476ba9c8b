"""Which units leave next, given the scores of all of them. Pure functions; no model is needed.

A unit is a head or a neuron of a block, written as the block and its index in the block.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from types import MappingProxyType

import numpy as np

from axformer.plan.blocks import Block, all_blocks
from axformer.plan.plan import Plan

Unit = tuple[Block, int]
Scores = Mapping[Block, np.ndarray]
"""The scores of each block's units, shape (units,)."""


def normalised(scores: Scores, by: str) -> dict[Block, np.ndarray]:
    """Divide the scores of each block by a norm of them; a block whose norm is 0 keeps its zeros.

    Args:
        scores: not negative.
        by: ``l1``, ``l2`` or ``none`` (Chiang et al., 2020, equation 4).
    """
    return {block: values / (_norm(values, by) or 1.0) for block, values in scores.items()}


def _norm(values: np.ndarray, by: str) -> float:
    if by == "none":
        return 1.0
    return float(np.abs(values).sum() if by == "l1" else np.sqrt(np.square(values).sum()))


def leaving_next(
    scores: Scores,
    left: Collection[Unit],
    count: int,
    *,
    owners: Mapping[Block, Block] = MappingProxyType({}),
    keeps_one: bool = False,
) -> list[Unit]:
    """The units with the lowest scores; of equal ones those with the lower index, then of the lower layer.

    Args:
        count: how many leave, at most.
        owners: where blocks share their weights, the first block of those that do. Units of the same
            index are one unit there, with one score, and leave together; they count one by one.
        keeps_one: the last unit of a block stays.
    """

    def place(unit: Unit) -> tuple[float, int, Block, Block]:
        block, index = unit
        return float(scores[block][index]), index, owners.get(block, block), block

    ranked = sorted((unit for unit in left if unit[0] in scores), key=place)
    there = Counter(block for block, _ in ranked)
    leaving: list[Unit] = []
    for _, uses in groupby(ranked, key=lambda unit: place(unit)[1:3]):
        together = list(uses)
        if len(leaving) + len(together) > count:
            break
        if not keeps_one or all(there[block] > 1 for block, _ in together):
            there.subtract(block for block, _ in together)
            leaving += together
    return leaving


def gone_after(share: float, total: int) -> int:
    """How many of all units have left when a share of them has."""
    return round(share * total)


def units_of(plan: Plan) -> set[Unit]:
    """Every unit that a plan keeps."""
    return {(block, unit) for block in all_blocks(len(plan.layers)) for unit in block.units(plan)}


def without_units(plan: Plan, leaving: Iterable[Unit]) -> Plan:
    """The plan without some units. A block stays even without units."""
    gone: dict[Block, set[int]] = {}
    for block, unit in leaving:
        gone.setdefault(block, set()).add(unit)
    for block, units in gone.items():
        plan = block.with_units(plan, [unit for unit in block.units(plan) if unit not in units])
    return plan
