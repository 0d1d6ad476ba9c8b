"""Changes between two plans."""

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
