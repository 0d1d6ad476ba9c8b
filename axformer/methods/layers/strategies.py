"""Which layers are dropped (Sajjad, Dalvi, Durrani, Nakov: On the Effect of Dropping Layers of Pre-trained Transformer Models,
2023, section 3).

A strategy is an order in which layers leave: dropping K of them drops the first K. So one that drops more contains one that
drops fewer, and gradual dropping follows the same order. Layers are counted from 0, the lowest; the paper counts from 1.
"""

from collections.abc import Callable, Mapping, Sequence

from axformer.config.layers import Strategy
from axformer.errors import ConfigError


def top(layers: int) -> list[int]:
    """From the highest layer down (section 3.1)."""
    return list(range(layers - 1, -1, -1))


def bottom(layers: int) -> list[int]:
    """From the lowest layer up (section 3.6): the embeddings feed the lowest layer that is left."""
    return list(range(layers))


def odd_alternate(layers: int) -> list[int]:
    """Every other layer from the top, those with odd numbers counted from 1 (section 3.2); about half of all layers."""
    return [index for index in top(layers) if index % 2 == 0]


def even_alternate(layers: int) -> list[int]:
    """Every other layer from the top, those with even numbers counted from 1 (section 3.2); half of all layers."""
    return [index for index in top(layers) if index % 2 == 1]


def symmetric(layers: int) -> list[int]:
    """From the middle outwards: as many layers stay at the bottom as at the top (section 3.5).

    The paper leaves an odd number of remaining layers open. Here the bottom keeps the one more, since lower layers matter most
    (section 5.1).
    """
    order: list[int] = []
    for count in range(1, layers + 1):
        at_the_bottom = (layers - count + 1) // 2
        middle = range(at_the_bottom, at_the_bottom + count)
        order += [index for index in middle if index not in order]
    return order


ORDERS: Mapping[Strategy, Callable[[int], list[int]]] = {
    Strategy.TOP: top,
    Strategy.BOTTOM: bottom,
    Strategy.ODD_ALTERNATE: odd_alternate,
    Strategy.EVEN_ALTERNATE: even_alternate,
    Strategy.SYMMETRIC: symmetric,
}
"""The order of each strategy that needs neither weights nor data, from the number of layers."""


def lowest_first(scores: Sequence[float]) -> list[int]:
    """All layers by their scores, the lowest first; of equal scores the higher layer first."""
    return sorted(range(len(scores)), key=lambda index: (scores[index], -index))


def highest_first(scores: Sequence[float]) -> list[int]:
    """All layers by their scores, the highest first; of equal scores the higher layer first."""
    return sorted(range(len(scores)), key=lambda index: (-scores[index], -index))


def above(scores: Sequence[float], threshold: float) -> list[int]:
    """The layers whose scores exceed a threshold, the highest score first (section 3.4)."""
    return [index for index in highest_first(scores) if scores[index] > threshold]


def explicit(chosen: Sequence[int], layers: int) -> list[int]:
    """The layers that a user names, in his order.

    Raises:
        ConfigError: a layer is named twice, or the model has no such layer.
    """
    for index in chosen:
        if not 0 <= index < layers:
            raise ConfigError(f"layer {index} cannot be dropped: the model has layers 0 to {layers - 1}")
    twice = next((index for place, index in enumerate(chosen) if index in chosen[:place]), None)
    if twice is not None:
        raise ConfigError(f"layer {twice} is to be dropped twice; name each layer once")
    return list(chosen)


def first(order: Sequence[int], count: int, layers: int) -> tuple[int, ...]:
    """The first layers of an order, ascending: those that are dropped.

    Args:
        order: layers in the order in which they leave.
        count: how many are dropped.
        layers: of the whole model.

    Raises:
        ConfigError: the order has fewer layers, or no layer would be left.
    """
    most = min(len(order), layers - 1)
    if not 0 <= count <= most:
        raise ConfigError(f"{count} layers cannot be dropped: of {layers} layers this strategy drops 0 to {most}")
    return tuple(sorted(order[:count]))
