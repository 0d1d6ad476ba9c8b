"""Elements: the removable parts of a transformer, at the granularities of the paper (section III-A), and their ids.

| id                              | kind           | what removal means                                                 |
|---------------------------------|----------------|--------------------------------------------------------------------|
| ``layer.3``                     | layer          | both of its blocks are removed                                     |
| ``layer.3.attention``           | attention      | the block adds nothing to the residual stream; its LayerNorm stays |
| ``layer.3.ffn``                 | ffn            | the same                                                           |
| ``layer.3.attention.head.5``    | head           | the head's slice of the context is 0; the projection's bias stays  |
| ``layer.3.ffn.neurons.128:256`` | neurons        | those activations are 0 before the projection down; its bias stays |
| ``layer.3.hard_attention``      | hard_attention | a rewrite: only the K largest attention probabilities are kept     |
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from axformer.errors import PlanError

_REMEMBERED = 20_000
"""Size of the cache of parsed ids, more than a pass has; a page that follows a pass parses the same ids repeatedly."""


class ElementKind(StrEnum):
    """What an element is."""

    LAYER = "layer"
    ATTENTION = "attention"
    FFN = "ffn"
    HEAD = "head"
    NEURONS = "neurons"
    HARD_ATTENTION = "hard_attention"


@dataclass(frozen=True)
class Element:
    """One removable part. ``start`` and ``stop`` bound heads or neurons, half open; whole blocks have none."""

    kind: ElementKind
    layer: int
    start: int | None = None
    stop: int | None = None

    @property
    def id(self) -> str:
        """The element's name in traces, plans and the API, for example ``layer.3.attention.head.5``."""
        match self.kind:
            case ElementKind.LAYER:
                return f"layer.{self.layer}"
            case ElementKind.HEAD:
                return f"layer.{self.layer}.attention.head.{self.start}"
            case ElementKind.NEURONS:
                return f"layer.{self.layer}.ffn.neurons.{self.start}:{self.stop}"
            case _:
                return f"layer.{self.layer}.{self.kind.value}"

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True)
class Dimensions:
    """The counts of a transformer that determine its elements."""

    layers: int
    heads: int
    hidden_size: int
    intermediate_size: int


def layer(index: int) -> Element:
    """Both blocks of one layer."""
    return Element(ElementKind.LAYER, index)


def attention(index: int) -> Element:
    """The self-attention block of one layer."""
    return Element(ElementKind.ATTENTION, index)


def ffn(index: int) -> Element:
    """The feed-forward block of one layer."""
    return Element(ElementKind.FFN, index)


def hard_attention(index: int) -> Element:
    """The rewrite of one layer's soft attention into hard attention."""
    return Element(ElementKind.HARD_ATTENTION, index)


def head(layer: int, index: int) -> Element:
    """One attention head."""
    return Element(ElementKind.HEAD, layer, index, index + 1)


def neurons(layer: int, start: int, stop: int) -> Element:
    """The feed-forward neurons ``start`` to ``stop``, half open."""
    return Element(ElementKind.NEURONS, layer, start, stop)


def heads_of(layer: int, dimensions: Dimensions) -> list[Element]:
    """All heads of a layer's attention block, in order."""
    return [head(layer, index) for index in range(dimensions.heads)]


def neuron_groups_of(layer: int, dimensions: Dimensions, group_size: int) -> list[Element]:
    """All neuron groups of a layer's feed-forward block, in order; the last may be smaller."""
    size = dimensions.intermediate_size
    return [neurons(layer, start, min(start + group_size, size)) for start in range(0, size, group_size)]


def halves_of(group: Element) -> list[Element]:
    """The two halves of a neuron group, the first no larger than the second; empty for a single neuron."""
    assert group.start is not None
    assert group.stop is not None
    middle = (group.start + group.stop) // 2
    return [
        neurons(group.layer, *half) for half in ((group.start, middle), (middle, group.stop)) if middle > group.start
    ]


_ENCODER = "encoder."


def encoder_share(share: float) -> str:
    """The id of a trial of a whole plan: the encoder cut to this share of its operations, for example ``encoder.0.5``."""
    return f"{_ENCODER}{share:g}"


def is_of_encoder(id: str | None) -> bool:
    """Whether an id is that of a trial of a whole plan."""
    return id is not None and id.startswith(_ENCODER)


_ID = re.compile(
    r"layer\.(?P<layer>\d+)"
    r"(?:\.(?P<block>attention|ffn|hard_attention)|\.attention\.head\.(?P<head>\d+)|\.ffn\.neurons\.(?P<start>\d+):(?P<stop>\d+))?"
)


@lru_cache(maxsize=_REMEMBERED)
def parse(id: str) -> Element:
    """The element with this id.

    Raises:
        PlanError: the text is not an element id.
    """
    found = _ID.fullmatch(id)
    if found is None:
        raise PlanError(f"'{id}' is not an element id; ids look like layer.0.ffn or layer.3.attention.head.5")
    index = int(found["layer"])
    if found["block"]:
        return Element(ElementKind(found["block"]), index)
    if found["head"]:
        return head(index, int(found["head"]))
    if found["start"]:
        return neurons(index, int(found["start"]), int(found["stop"]))
    return layer(index)
