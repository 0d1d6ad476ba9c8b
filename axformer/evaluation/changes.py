"""Changes between two plans, and what they affect of a forward pass: where it begins, and where one position is enough."""

from dataclasses import dataclass

from axformer.plan.blocks import Block, BlockKind
from axformer.plan.plan import LayerPlan, Plan, without


@dataclass(frozen=True)
class Units:
    """Some heads or neurons of one block."""

    block: Block
    plan: LayerPlan
    """The layer with only these heads or neurons in this block."""


def first_changed_block(now: Plan, then: Plan) -> int:
    """The number of the lowest block that differs; the number of blocks if none does."""
    for index, (old, new) in enumerate(zip(now.layers, then.layers, strict=True)):
        if _attention_of(old) != _attention_of(new):
            return Block(index, BlockKind.ATTENTION).number
        if old != new:
            return Block(index, BlockKind.FFN).number
    return len(BlockKind) * len(now.layers)


def longest_untouched(now: Plan, then: Plan) -> int:
    """The length in tokens up to which samples cannot change: K if the plans differ only by new hard attention, else 0."""
    reach = []
    for old, new in zip(now.layers, then.layers, strict=True):
        if old == new:
            continue
        if old.hard_attention is not None or old != new.model_copy(update={"hard_attention": None}):
            return 0
        assert new.hard_attention is not None
        reach.append(new.hard_attention)
    return min(reach, default=0)


def units_removed(now: Plan, then: Plan) -> Units | None:
    """The heads or neurons removed from one block, if nothing else differs and the block keeps others; else None."""
    changed = [index for index, pair in enumerate(zip(now.layers, then.layers, strict=True)) if pair[0] != pair[1]]
    if len(changed) != 1:
        return None
    old, new = now.layers[changed[0]], then.layers[changed[0]]
    heads = tuple(head for head in old.heads if head not in new.heads)
    neurons = without(old.neurons, new.neurons)
    if (
        new.heads
        and new == old.model_copy(update={"heads": new.heads})
        and len(heads) + len(new.heads) == len(old.heads)
    ):
        return Units(Block(changed[0], BlockKind.ATTENTION), old.model_copy(update={"heads": heads}))
    if (
        new.neurons
        and new == old.model_copy(update={"neurons": new.neurons})
        and without(old.neurons, neurons) == new.neurons
    ):
        return Units(Block(changed[0], BlockKind.FFN), old.model_copy(update={"neurons": neurons}))
    return None


def _attention_of(layer: LayerPlan) -> tuple[object, ...]:
    return layer.dropped, layer.attention, layer.heads, layer.hard_attention


@dataclass(frozen=True)
class Route:
    """The route of a plan. Blocks are counted from 0, two per layer; the number of blocks stands for the end of the layers."""

    runs: Plan
    """The plan whose layers are run."""
    first: int
    """The first block that differs from the current plan."""
    known: int
    """The highest block whose cached input, if there is one, is valid for this plan."""
    tail: int
    """The first block of the tail, where only one position is computed."""


def route_of(now: Plan, then: Plan, first: int, tails: tuple[int, int], units: Units | None) -> Route:
    """The route of a plan on trial.

    Cached inputs of the current plan have all positions in blocks up to its tail, and one position after it.

    - If the tail moves up, the trial needs all positions in blocks where only one is cached, so it begins at the old tail at
      the latest.
    - If the tail moves down or stays, the trial can begin at its first change. Its tail begins there at the earliest, since
      nothing below is run again, unless only one position is cached there.

    Args:
        now: the current plan.
        then: the plan on trial.
        first: a block below which the plans do not differ.
        tails: the first block of the tail under each plan.
        units: the units whose share the trial subtracts from a block's output, if that is its only change.
    """
    tail_now, tail_then = tails
    runs = then if units is None else now
    if tail_then > tail_now:
        return Route(runs, first, known=min(first, tail_now), tail=tail_then)
    return Route(runs, first, known=first, tail=max(tail_then, min(first, tail_now)))
