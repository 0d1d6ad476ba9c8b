"""Blocks: every layer of a transformer has an attention block and, above it, a feed-forward block.

Traces, level tables and files number the blocks from the bottom: layer ``l`` has attention block ``2l`` and feed-forward block
``2l + 1``. No other module needs to know that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from axformer.plan.elements import Dimensions, Element, attention, ffn, head, neurons, ranges_of
from axformer.plan.plan import LayerPlan, Plan, kept_neurons


class BlockKind(StrEnum):
    """The two kinds of blocks, in the order in which they run."""

    ATTENTION = "attention"
    FFN = "ffn"


@dataclass(frozen=True, order=True)
class Block:
    """One block of a model; blocks compare from the bottom up."""

    layer: int
    kind: BlockKind

    @classmethod
    def at(cls, number: int) -> "Block":
        """The block with a number."""
        layer, place = divmod(number, len(BlockKind))
        return cls(layer, tuple(BlockKind)[place])

    @property
    def number(self) -> int:
        """Its place among all blocks, counted from the bottom."""
        return len(BlockKind) * self.layer + self.is_ffn

    @property
    def is_ffn(self) -> bool:
        """Whether it is a feed-forward block, whose units are neurons; those of an attention block are heads."""
        return self.kind is BlockKind.FFN

    @property
    def element(self) -> Element:
        """The block as an element that can be removed."""
        return ffn(self.layer) if self.is_ffn else attention(self.layer)

    def unit(self, index: int) -> Element:
        """One of its heads or neurons as an element."""
        return neurons(self.layer, index, index + 1) if self.is_ffn else head(self.layer, index)

    def size(self, dimensions: Dimensions) -> int:
        """Number of units of the whole block."""
        return dimensions.intermediate_size if self.is_ffn else dimensions.heads

    def units(self, plan: Plan) -> Sequence[int]:
        """The units that a plan keeps, ascending."""
        return self.units_in(plan.layers[self.layer])

    def units_in(self, layer: LayerPlan) -> Sequence[int]:
        """The units that are kept, ascending, given the plan of the block's layer."""
        return kept_neurons(layer) if self.is_ffn else layer.heads

    def is_kept_in(self, layer: LayerPlan) -> bool:
        """Whether the block is there, perhaps without units, given the plan of its layer."""
        return layer.ffn if self.is_ffn else layer.attention

    def part_of(self, layer: LayerPlan) -> tuple[object, ...]:
        """What the plan of the block's layer says of this block."""
        return (layer.ffn, layer.neurons) if self.is_ffn else (layer.attention, layer.heads, layer.hard_attention)

    def with_units(self, plan: Plan, units: Sequence[int]) -> Plan:
        """The plan with only these units left in the block. The block itself stays, even without units."""
        change = {"neurons": ranges_of(units)} if self.is_ffn else {"heads": tuple(units)}
        layers = list(plan.layers)
        layers[self.layer] = layers[self.layer].model_copy(update=change)
        return plan.model_copy(update={"layers": tuple(layers)})


def blocks_of_layer(layer: int) -> tuple[Block, Block]:
    """The blocks of a layer, in the order in which they run."""
    return Block(layer, BlockKind.ATTENTION), Block(layer, BlockKind.FFN)


def all_blocks(layers: int) -> list[Block]:
    """The blocks of a model with this many layers, bottom first."""
    return [block for layer in range(layers) for block in blocks_of_layer(layer)]
