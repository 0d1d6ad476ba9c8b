"""The order in which a pass inspects blocks (section III-A.2 and appendix A).

Layers fall into three regions: bottom, middle, top. An order names the regions first to last; inside a region the last
layer comes first, and inside a layer the FFN block comes before the attention block. ``order=importance`` is not in the paper:
the least important block comes first.
"""

import random
from collections.abc import Iterable, Mapping

from axformer.config import Order, PassConfig
from axformer.config.axformer import TASKS
from axformer.errors import ConfigError
from axformer.plan.elements import Dimensions, Element, ElementKind, attention, ffn, layer, parse

# Table VII: linguistic acceptability is the only task measured that does best in an order other than the default.
_ORDER_OF_TASK = {Order.LINGUISTIC_ACCEPTABILITY: Order.TOP_BOTTOM_MIDDLE}


def inspection_order(
    dimensions: Dimensions, config: PassConfig, importance: Mapping[Element, float] | None = None
) -> list[Element]:
    """The queue of Algorithm 1, line 8: blocks, or whole layers with ``inspect_layers_first``.

    Args:
        dimensions: the model's dimensions.
        config: the knobs.
        importance: of every block, for ``order=importance``. Without it, the blocks then come in the order of
            ``auto``, which is enough for those who count them.

    Raises:
        ConfigError: an explicit order names an element that is not a block of this model.
    """
    blocks = block_order(dimensions, config, importance)
    if config.variant.inspect_layers_first:
        return [layer(index) for index in dict.fromkeys(block.layer for block in blocks)]
    return blocks


def block_order(
    dimensions: Dimensions, config: PassConfig, importance: Mapping[Element, float] | None = None
) -> list[Element]:
    """The blocks to inspect, first to last; arguments as for :func:`inspection_order`.

    Raises:
        ConfigError: an explicit order names an element that is not a block of this model.
    """
    order = order_of(config)
    if order is Order.EXPLICIT:
        return [_block(id, dimensions) for id in config.variant.explicit_order]
    if order is Order.RANDOM:
        blocks = _blocks_of(range(dimensions.layers))
        random.Random(config.seed).shuffle(blocks)  # noqa: S311 - an experiment's seed, not a secret
        return blocks
    if order is Order.IMPORTANCE:
        order = Order.TOP_MIDDLE_BOTTOM
        if importance is not None:
            return sorted(_blocks_of(reversed(range(dimensions.layers))), key=lambda block: importance[block])
    regions = _regions(dimensions.layers)
    return [block for name in order.value.split("-") for block in _blocks_of(reversed(regions[name]))]


def order_of(config: PassConfig) -> Order:
    """The order that the knobs ask for; that of a task is the paper's, and otherwise top to bottom."""
    if config.order is Order.AUTO or config.order in TASKS:
        return _ORDER_OF_TASK.get(config.order, Order.TOP_MIDDLE_BOTTOM)
    return config.order


def _regions(layers: int) -> dict[str, range]:
    first, second = layers // 3, 2 * layers // 3
    return {"bottom": range(first), "middle": range(first, second), "top": range(second, layers)}


def _blocks_of(layers: Iterable[int]) -> list[Element]:
    return [block for index in layers for block in (ffn(index), attention(index))]


def _block(id: str, dimensions: Dimensions) -> Element:
    element = parse(id)
    if element.kind not in (ElementKind.ATTENTION, ElementKind.FFN) or element.layer >= dimensions.layers:
        raise ConfigError(
            f"explicit_order names '{id}', which is not a block of this model; "
            f"its blocks are layer.0.ffn to layer.{dimensions.layers - 1}.attention"
        )
    return element
